/* SPDX-License-Identifier: Apache-2.0 */
/* test-manager-quarantine.c - deliberate difference 3 of manager.h: one unreadable or foreign file
 * quarantines that pod and the blocks it names, and the manager starts */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/faults.h>
#include <unit/manager-world.h>
#include <unit/scratch.h>

#include "base/text.h"
#include "userns/manager.h"
#include "userns/mapping.h"

enum { UNIT = ND_IDS_UNIT };

static void a_file_without_valid_json_quarantines_its_pod_and_the_blocks_it_names(void **state) {
        struct manager_world *world = *state;
        const uint32_t named = 4 * UNIT;
        struct nd_userns_range range;

        manager_put_file(world, "bad", "{\"uidMappings\":[{\"hostId\":262144,\"contai");
        manager_put_block(world, "good", 2 * UNIT);
        manager_reopen(world);
        expect_contains(manager_find(world, "bad").problem, "invalid user namespace mappings file: ");
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 1);
        assert_int_equal(manager_get(world, "good"), 2 * UNIT);
        assert_int_equal(manager_handed_out(world, &named, 1), 8);
        expect_error(nd_userns_manager_get(world->manager, "bad", &range), ND_INVALID, "invalid user namespace mappings file");
        /* still, after the pod was requested */
        assert_int_equal(manager_handed_out(world, &named, 1), 8);
}

static void a_foreign_block_is_quarantined_as_far_as_it_reaches(void **state) {
        struct manager_world *world = *state;
        /* touches three blocks */
        nd_autofree char *text = nd_mapping_format(2 * UNIT + 1, 2 * UNIT);

        manager_put_file(world, "bad", text);
        manager_reopen(world);
        expect_contains(manager_find(world, "bad").problem, "wrong user namespace length 131072");
        assert_int_equal(manager_handed_out(world, (uint32_t[]) {2 * UNIT, 3 * UNIT, 4 * UNIT}, 3), 7);
}

static void a_file_with_two_mappings_quarantines_the_blocks_of_both(void **state) {
        struct manager_world *world = *state;

        manager_put_file(world, "bad",
                         "{\"uidMappings\":[{\"hostId\":131072,\"length\":65536},{\"hostId\":327680,\"length\":65536}],"
                         "\"gidMappings\":[{\"hostId\":131072,\"length\":65536}]}");
        manager_reopen(world);
        expect_contains(manager_find(world, "bad").problem, "no more than one mapping allowed.");
        assert_int_equal(manager_handed_out(world, (uint32_t[]) {2 * UNIT, 5 * UNIT}, 2), 8);
}

static void different_blocks_for_users_and_groups_are_both_quarantined(void **state) {
        struct manager_world *world = *state;

        manager_put_file(world, "bad",
                         "{\"uidMappings\":[{\"hostId\":131072,\"length\":65536}],"
                         "\"gidMappings\":[{\"hostId\":327680,\"length\":65536}]}");
        manager_reopen(world);
        assert_int_equal(manager_handed_out(world, (uint32_t[]) {2 * UNIT, 5 * UNIT}, 2), 8);
}

static void of_two_files_with_one_block_one_pod_keeps_it_and_the_other_is_quarantined(void **state) {
        struct manager_world *world = *state;
        const uint32_t block = 3 * UNIT;
        struct nd_userns_range range;

        manager_put_block(world, "a", block);
        manager_put_block(world, "b", block);
        manager_reopen(world);
        assert_int_equal(manager_get(world, "a"), block);
        expect_contains(manager_find(world, "b").problem, "range picked for pod \"b\" already taken");
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_INVALID, "already taken");
        assert_int_equal(manager_handed_out(world, &block, 1), 9);

        /* The block is free only after both have released it. */
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(manager_handed_out(world, &block, 1), 9);
        expect_ok(nd_userns_manager_release(world->manager, "b"));
        assert_int_equal(manager_handed_out(world, nullptr, 0), 10);
}

static void a_bad_file_does_not_take_a_block_from_the_pod_that_has_it(void **state) {
        struct manager_world *world = *state;

        /* sorts before the good one */
        manager_put_file(world, "a-bad-one", "{\"uidMappings\":[{\"hostId\":196608,");
        manager_put_block(world, "good", 3 * UNIT);
        manager_reopen(world);
        assert_int_equal(manager_get(world, "good"), 3 * UNIT);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 1);
}

static void a_pod_in_conflict_gets_the_block_when_the_other_is_gone(void **state) {
        struct manager_world *world = *state;

        manager_put_block(world, "a", 3 * UNIT);
        manager_put_block(world, "b", 3 * UNIT);
        manager_reopen(world);
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(manager_get(world, "b"), 3 * UNIT);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 0);
}

static void a_repaired_file_ends_the_quarantine(void **state) {
        struct manager_world *world = *state;
        const uint32_t mended = 7 * UNIT;

        manager_put_file(world, "bad", "{\"uidMappings\":[{\"hostId\":262144,");
        manager_reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 1);
        manager_put_block(world, "bad", mended);
        assert_int_equal(manager_get(world, "bad"), mended);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 0);
        assert_string_equal(manager_find(world, "bad").problem, "");
        /* the blocks of the invalid file are free again */
        assert_int_equal(manager_handed_out(world, &mended, 1), 9);
}

static void a_removed_file_ends_the_quarantine_too(void **state) {
        struct manager_world *world = *state;
        nd_autofree char *file = nd_format("%s/pods/bad/userns", world->root);

        manager_put_file(world, "bad", "nonsense");
        manager_reopen(world);
        assert_int_equal(unlink(file), 0);
        (void) manager_get(world, "bad");
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 0);
        assert_int_equal(nd_userns_manager_count(world->manager).pods, 1);
}

static void the_sweep_releases_a_quarantined_pod_that_is_not_alive(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct manager_world *world = *state;

        manager_put_file(world, "bad", "{\"uidMappings\":[{\"hostId\":262144,");
        manager_put_file(world, "kept", "nonsense");
        (void) nd_map_put(&alive, "kept", nullptr);
        manager_reopen(world);
        expect_ok(nd_userns_manager_sweep(world->manager, &alive));
        assert_false(manager_find(world, "bad").there);
        assert_true(manager_find(world, "kept").there);
        assert_null(manager_get_file(world, "bad"));
        assert_int_equal(manager_handed_out(world, nullptr, 0), 10);
}

static void a_file_unreadable_for_lack_of_resources_fails_the_start(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_manager *manager = nullptr;

        manager_put_block(world, "a", 3 * UNIT);
        faults_arm(FAULT_OPENAT, 2, EMFILE, true); /* the first opens pods/ */
        expect_error(nd_userns_manager_open(&world->settings, &manager), ND_EXHAUSTED,
                     "record pod mappings for existing pod \"a\": ");
        assert_true(faults_disarm());
        assert_null(manager);
}

static void a_file_on_a_bad_disk_quarantines_its_pod_only(void **state) {
        struct manager_world *world = *state;

        manager_put_block(world, "a", 3 * UNIT);
        faults_arm(FAULT_OPENAT, 2, EIO, true);
        manager_reopen(world);
        assert_true(faults_disarm());
        expect_contains(manager_find(world, "a").problem, "Input/output error");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                manager_test(a_file_without_valid_json_quarantines_its_pod_and_the_blocks_it_names),
                manager_test(a_foreign_block_is_quarantined_as_far_as_it_reaches),
                manager_test(a_file_with_two_mappings_quarantines_the_blocks_of_both),
                manager_test(different_blocks_for_users_and_groups_are_both_quarantined),
                manager_test(of_two_files_with_one_block_one_pod_keeps_it_and_the_other_is_quarantined),
                manager_test(a_bad_file_does_not_take_a_block_from_the_pod_that_has_it),
                manager_test(a_pod_in_conflict_gets_the_block_when_the_other_is_gone),
                manager_test(a_repaired_file_ends_the_quarantine),
                manager_test(a_removed_file_ends_the_quarantine_too),
                manager_test(the_sweep_releases_a_quarantined_pod_that_is_not_alive),
                manager_test(a_file_unreadable_for_lack_of_resources_fails_the_start),
                manager_test(a_file_on_a_bad_disk_quarantines_its_pod_only),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
