/* SPDX-License-Identifier: Apache-2.0 */
/* test-manager.c - the kubelet's rules, and the deliberate differences that manager.h lists, each
 * by its number; difference 3, the quarantine, is in test-manager-quarantine.c
 *
 * tests/component/userns compares histories with the kubelet's own code; this file has the cases
 * that must hold regardless of the kubelet. */
#include <unit/expect.h>

#include <stdio.h>
#include <sys/stat.h>

#include <unit/faults.h>
#include <unit/manager-world.h>
#include <unit/scratch.h>

#include "base/text.h"
#include "userns/manager.h"
#include "userns/mapping.h"

enum { UNIT = ND_IDS_UNIT };

/* The kubelet's rules. */

static void a_pod_gets_a_block_that_is_in_its_file_before_it_is_returned(void **state) {
        struct manager_world *world = *state;
        nd_autofree char *expected = nullptr;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        expected = nd_mapping_format(first, UNIT);
        expect_text(manager_get_file(world, "a"), expected);
        assert_int_equal(first % UNIT, 0);
        assert_in_range(first, UNIT, 10 * UNIT);
}

static void a_pod_keeps_its_block_across_calls_and_restarts(void **state) {
        struct manager_world *world = *state;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        assert_int_equal(manager_get(world, "a"), first);
        manager_reopen(world);
        assert_int_equal(manager_get(world, "a"), first);
        assert_int_equal(nd_userns_manager_count(world->manager).pods, 1);
        assert_int_equal(nd_userns_manager_count(world->manager).free, 9);
}

static void no_two_pods_get_one_block_until_none_is_left(void **state) {
        struct manager_world *world = *state;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        assert_int_equal(manager_handed_out(world, &first, 1), 9);
}

static void a_released_block_is_handed_out_again(void **state) {
        struct manager_world *world = *state;

        manager_reopen(world);
        (void) manager_get(world, "a");
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_null(manager_get_file(world, "a"));
        /* releasing a pod without a block succeeds */
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        expect_ok(nd_userns_manager_release(world->manager, "never-seen"));
        assert_int_equal(manager_handed_out(world, nullptr, 0), 10);
}

static void a_file_of_another_writer_is_used_when_the_pod_is_requested(void **state) {
        struct manager_world *world = *state;
        const uint32_t block = 5 * UNIT;

        manager_reopen(world);
        manager_put_block(world, "a", block);
        assert_int_equal(manager_get(world, "a"), block);
        assert_int_equal(manager_handed_out(world, &block, 1), 9);
}

static void a_file_that_names_a_taken_block_is_refused_with_the_kubelet_s_text(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_range range;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        manager_put_block(world, "b", first);
        expect_error_text(nd_userns_manager_get(world->manager, "b", &range),
                          "user namespace: range picked for pod \"b\" already taken");
        manager_put_block(world, "a", first == UNIT ? 2 * UNIT : UNIT);
        expect_error_text(nd_userns_manager_get(world->manager, "a", &range),
                          "user namespace: different user namespace range already used by pod \"a\"");
}

static void invalid_files_are_refused_with_the_kubelet_s_texts(void **state) {
        static const struct {
                uint32_t host;
                uint32_t length;
                const char *error;
        } cases[] = {{2 * UNIT, 2 * UNIT, "user namespace: wrong user namespace length 131072"},
                     {2 * UNIT + 1, UNIT, "user namespace: wrong user namespace offset specified 131073"},
                     {11 * UNIT, UNIT, "user namespace: id 720896 is out of range"},
                     {0, UNIT, "user namespace: id 0 is out of range"}};
        struct manager_world *world = *state;
        struct nd_userns_range range;

        manager_reopen(world);
        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *text = nd_mapping_format(cases[i].host, cases[i].length);

                manager_put_file(world, "a", text);
                expect_error_text(nd_userns_manager_get(world->manager, "a", &range), cases[i].error);
        }
        manager_put_file(world, "a", "{\"uidMappings\":[],\"gidMappings\":[]}");
        expect_error_text(nd_userns_manager_get(world->manager, "a", &range),
                          "user namespace: invalid user namespace configuration: no more than one mapping allowed.");
        assert_int_equal(nd_userns_manager_count(world->manager).free, 10);
}

static void an_empty_file_means_no_namespace_yet(void **state) {
        struct manager_world *world = *state;

        manager_put_file(world, "a", "");
        manager_reopen(world);
        assert_false(manager_find(world, "a").there);
        (void) manager_get(world, "a");
        assert_true(manager_find(world, "a").there);
}

static void a_range_that_cannot_be_used_is_refused_at_the_start(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_manager *manager = nullptr;

        world->settings.max_pods = 11;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned IDs are not enough to support 11 pods");
        world->settings.range.first = 100000;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned ID 100000 is not a multiple of 65536");
        assert_null(manager);
}

static void blocks_have_the_configured_size(void **state) {
        struct manager_world *world = *state;

        world->settings.ids_per_pod = 3 * UNIT; /* does not divide 2^32 */
        world->settings.range = (struct nd_userns_range) {.first = 3 * UNIT, .count = 12 * UNIT};
        manager_reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).usable, 4);
        assert_int_equal(manager_get(world, "a") % (3 * UNIT), 0);
        assert_int_equal(manager_handed_out(world, nullptr, 0), 3);
}

static void the_sweep_releases_dead_pods_and_pods_without_a_directory(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct manager_world *world = *state;
        nd_autofree char *directory = nd_format("%s/pods/gone", world->root), *file = nd_format("%s/userns", directory);
        uint32_t kept;

        manager_reopen(world);
        kept = manager_get(world, "alive");
        (void) manager_get(world, "dead");
        (void) manager_get(world, "gone");
        assert_int_equal(unlink(file), 0);
        assert_int_equal(rmdir(directory), 0);
        (void) nd_map_put(&alive, "alive", nullptr);
        /* released for lack of a directory although it is alive, as the kubelet does */
        (void) nd_map_put(&alive, "gone", nullptr);
        expect_ok(nd_userns_manager_sweep(world->manager, &alive));
        assert_null(manager_get_file(world, "dead"));
        assert_int_equal(nd_userns_manager_count(world->manager).free, 9);
        assert_int_equal(manager_get(world, "alive"), kept);
}

static void the_sweep_needs_the_directory_of_the_pods(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct manager_world *world = *state;

        manager_reopen(world);
        expect_error(nd_userns_manager_sweep(world->manager, &alive), ND_NOT_FOUND, "user namespace: read pods from disk: ");
}

/* Deliberate difference 1. */
static void the_block_that_ends_at_2_to_the_32_is_never_handed_out(void **state) {
        struct manager_world *world = *state;

        world->settings.range = (struct nd_userns_range) {.first = UINT32_MAX - 3 * UNIT + 1, .count = 3 * UNIT};
        world->settings.max_pods = 2;
        manager_reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).usable, 2);
        assert_int_equal(manager_handed_out(world, &(uint32_t) {UINT32_MAX - UNIT + 1}, 1), 2);
}

static void the_block_that_ends_at_2_to_the_32_does_not_count_as_room(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_manager *manager;

        world->settings.range = (struct nd_userns_range) {.first = UINT32_MAX - 3 * UNIT + 1, .count = 3 * UNIT};
        world->settings.max_pods = 3;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned IDs are not enough to support 3 pods");
}

static void a_pod_that_a_kubelet_gave_the_last_block_keeps_it(void **state) {
        struct manager_world *world = *state;
        const uint32_t last = UINT32_MAX - UNIT + 1;
        struct nd_userns_range range;

        world->settings.range = nd_range_default(UNIT);
        manager_put_block(world, "a", last);
        manager_reopen(world);
        assert_int_equal(manager_get(world, "a"), last);
        manager_put_block(world, "b", last);
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_INVALID, "already taken");
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(nd_userns_manager_count(world->manager).free, nd_userns_manager_count(world->manager).usable);
}

/* Deliberate difference 4. */
static void in_a_user_namespace_only_blocks_within_one_extent_are_handed_out(void **state) {
        /* one block and a half */
        struct nd_userns_extent pieces[] = {{.first = 2 * UNIT, .count = UNIT + UNIT / 2},
                                            /* across two blocks */
                                            {.first = 3 * UNIT + UNIT / 2, .count = UNIT},
                                            /* two blocks */
                                            {.first = 6 * UNIT, .count = 2 * UNIT}};
        struct nd_userns_extents delegated = {.items = pieces, .count = 3};
        struct manager_world *world = *state;

        world->settings.delegated = &delegated;
        manager_reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).usable, 3);
        assert_int_equal(manager_handed_out(world, (uint32_t[]) {UNIT, 3 * UNIT, 4 * UNIT, 5 * UNIT, 8 * UNIT}, 5), 3);
}

static void a_file_that_names_a_block_outside_of_the_extents_is_foreign(void **state) {
        struct nd_userns_extent piece = {.first = 2 * UNIT, .count = UNIT};
        struct nd_userns_extents delegated = {.items = &piece, .count = 1};
        struct manager_world *world = *state;

        manager_put_block(world, "a", 5 * UNIT);
        manager_put_block(world, "b", 2 * UNIT);
        world->settings.delegated = &delegated;
        manager_reopen(world);
        expect_contains(manager_find(world, "a").problem, "id 327680 is out of range");
        assert_int_equal(manager_get(world, "b"), 2 * UNIT);
}

static void without_an_extent_nothing_is_allocated(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_manager *manager = nullptr;
        struct nd_userns_extents none = {};

        world->settings.delegated = &none;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned IDs are not enough to support 1 pods");
        assert_null(manager);
}

/* Deliberate difference 5. */
static void a_block_is_not_free_when_its_file_could_not_be_removed(void **state) {
        struct manager_world *world = *state;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        faults_arm(FAULT_UNLINKAT, 1, EIO, false);
        expect_error(nd_userns_manager_release(world->manager, "a"), ND_INTERNAL, "pod 'a': remove 'userns'");
        assert_true(faults_disarm());
        assert_int_equal(manager_handed_out(world, &first, 1), 9);
        assert_int_equal(manager_get(world, "a"), first);
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(manager_handed_out(world, nullptr, 0), 10);
}

static void a_block_is_not_free_when_the_removal_may_not_survive_a_crash(void **state) {
        struct manager_world *world = *state;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        faults_arm(FAULT_FSYNC, 1, EIO, false);
        expect_error(nd_userns_manager_release(world->manager, "a"), ND_INTERNAL, "pod 'a': sync");
        assert_true(faults_disarm());
        assert_int_equal(manager_handed_out(world, &first, 1), 9);
}

static void a_pod_whose_file_could_not_be_written_has_no_block(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_range range = {.first = 7};

        manager_reopen(world);
        faults_arm(FAULT_FSYNC, 1, ENOSPC, false);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_EXHAUSTED, "create user namespace: ");
        assert_true(faults_disarm());
        assert_int_equal(range.first, 7);
        assert_false(manager_find(world, "a").there);
        assert_int_equal(manager_handed_out(world, nullptr, 0), 10);
}

static void a_file_that_was_written_in_part_and_cannot_be_removed_keeps_its_block(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_range range;
        struct manager_found found;
        uint32_t first;

        manager_reopen(world);
        /* pods/, the file, the directory after the rename */
        faults_arm(FAULT_FSYNC, 3, EIO, false);
        faults_also(FAULT_UNLINKAT, EIO);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_INTERNAL, "create user namespace: ");
        assert_true(faults_disarm());
        found = manager_find(world, "a");
        assert_true(found.there);
        first = (uint32_t) found.first;
        assert_int_equal(manager_handed_out(world, &first, 1), 9);
}

/* Deliberate difference 6. */
static void a_pod_whose_file_vanished_gets_its_own_block_again(void **state) {
        struct manager_world *world = *state;
        nd_autofree char *file = nd_format("%s/pods/a/userns", world->root), *text = nullptr, *expected = nullptr;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        assert_int_equal(unlink(file), 0);
        assert_int_equal(manager_get(world, "a"), first);
        text = manager_get_file(world, "a");
        expected = nd_mapping_format(first, UNIT);
        assert_string_equal(text, expected);
        assert_int_equal(nd_userns_manager_count(world->manager).free, 9);
}

static void a_pod_whose_file_vanished_keeps_its_block_when_the_file_cannot_be_written(void **state) {
        struct manager_world *world = *state;
        nd_autofree char *file = nd_format("%s/pods/a/userns", world->root);
        struct nd_userns_range range;
        uint32_t first;

        manager_reopen(world);
        first = manager_get(world, "a");
        assert_int_equal(unlink(file), 0);
        faults_arm(FAULT_FSYNC, 1, ENOSPC, false);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_EXHAUSTED, "create user namespace: ");
        assert_true(faults_disarm());
        /* its containers run with these IDs */
        assert_int_equal(manager_handed_out(world, &first, 1), 9);
        assert_int_equal(manager_get(world, "a"), first);
}

/* Deliberate difference 7. */
static void links_fifos_and_large_files_are_foreign_files(void **state) {
        static char large[ND_MAPPING_CEILING + 1];
        struct manager_world *world = *state;
        nd_autofree char *link = nd_format("%s/pods/link/userns", world->root),
                         *fifo = nd_format("%s/pods/fifo/userns", world->root);

        manager_put_block(world, "good", 2 * UNIT);
        scratch_mkdir(world->root, "pods/link");
        scratch_mkdir(world->root, "pods/fifo");
        scratch_mkdir(world->root, "pods/large");
        assert_int_equal(symlink("../good/userns", link), 0);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        memset(large, ' ', sizeof large);
        scratch_write(world->root, "pods/large/userns", large, sizeof large);
        manager_reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 3);
        expect_contains(manager_find(world, "link").problem, "symbolic links");
        expect_contains(manager_find(world, "fifo").problem, "not a regular file");
        expect_contains(manager_find(world, "large").problem, "more than 65536 bytes");
        assert_int_equal(manager_get(world, "good"), 2 * UNIT);
}

/* Deliberate difference 8. */
static void a_uid_that_cannot_name_a_directory_gets_no_block(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_range range;

        manager_reopen(world);
        expect_error(nd_userns_manager_get(world->manager, "../etc", &range), ND_INVALID, "cannot name a directory");
        expect_error(nd_userns_manager_get(world->manager, "", &range), ND_INVALID, "cannot name a directory");
        assert_int_equal(nd_userns_manager_count(world->manager).free, 10);
}

/* Deliberate difference 9. */
static void looking_up_a_pod_s_file_does_not_create_its_directory(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_range range;

        world->settings.range.count = UNIT;
        manager_reopen(world);
        (void) manager_get(world, "a");
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_EXHAUSTED, "could not find an empty slot");
        assert_false(scratch_has(world->root, "pods/b"));
        manager_reopen(world);
        expect_ok(nd_userns_manager_release(world->manager, "c"));
        assert_false(scratch_has(world->root, "pods/c"));
}

/* Blocks that the runtime reports. */

static void a_reserved_block_is_given_to_its_pod_only(void **state) {
        struct manager_world *world = *state;
        const uint32_t block = 6 * UNIT;

        manager_reopen(world);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_userns_range) {.first = block, .count = UNIT});
        assert_null(manager_get_file(world, "a")); /* nothing is written */
        assert_int_equal(manager_handed_out(world, &block, 1), 9);
        assert_int_equal(manager_get(world, "a"), block);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_userns_range) {.first = UNIT, .count = UNIT});
        assert_int_equal(manager_get(world, "a"), block);
}

static void a_reserved_pod_keeps_its_block_when_the_file_cannot_be_written(void **state) {
        struct manager_world *world = *state;
        const uint32_t block = 6 * UNIT;
        struct nd_userns_range range;

        manager_reopen(world);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_userns_range) {.first = block, .count = UNIT});
        faults_arm(FAULT_WRITE, 1, ENOSPC, false);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_EXHAUSTED, "create user namespace: ");
        assert_true(faults_disarm());
        assert_int_equal(manager_handed_out(world, &block, 1), 9);
}

static void a_reserved_block_of_another_size_is_kept_out_of_use_but_not_written(void **state) {
        struct manager_world *world = *state;
        struct nd_userns_range range;

        manager_reopen(world);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_userns_range) {.first = 2 * UNIT + 5, .count = 10});
        assert_int_equal(manager_handed_out(world, &(uint32_t) {2 * UNIT}, 1), 9);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_INVALID, "wrong user namespace length 10");
        assert_null(manager_get_file(world, "a"));
}

static void a_read_only_manager_changes_nothing(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct manager_world *world = *state;
        struct nd_userns_range range;

        manager_put_block(world, "a", 2 * UNIT);
        world->settings.read_only = true;
        manager_reopen(world);
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_PRECONDITION, "read-only");
        expect_error(nd_userns_manager_release(world->manager, "a"), ND_PRECONDITION, "read-only");
        expect_error(nd_userns_manager_sweep(world->manager, &alive), ND_PRECONDITION, "read-only");
        assert_int_equal(nd_userns_manager_count(world->manager).pods, 1);
        assert_true(scratch_has(world->root, "pods/a/userns"));
        assert_false(scratch_has(world->root, "pods/b"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                manager_test(a_pod_gets_a_block_that_is_in_its_file_before_it_is_returned),
                manager_test(a_pod_keeps_its_block_across_calls_and_restarts),
                manager_test(no_two_pods_get_one_block_until_none_is_left),
                manager_test(a_released_block_is_handed_out_again),
                manager_test(a_file_of_another_writer_is_used_when_the_pod_is_requested),
                manager_test(a_file_that_names_a_taken_block_is_refused_with_the_kubelet_s_text),
                manager_test(invalid_files_are_refused_with_the_kubelet_s_texts),
                manager_test(an_empty_file_means_no_namespace_yet),
                manager_test(a_range_that_cannot_be_used_is_refused_at_the_start),
                manager_test(blocks_have_the_configured_size),
                manager_test(the_sweep_releases_dead_pods_and_pods_without_a_directory),
                manager_test(the_sweep_needs_the_directory_of_the_pods),
                manager_test(the_block_that_ends_at_2_to_the_32_is_never_handed_out),
                manager_test(the_block_that_ends_at_2_to_the_32_does_not_count_as_room),
                manager_test(a_pod_that_a_kubelet_gave_the_last_block_keeps_it),
                manager_test(in_a_user_namespace_only_blocks_within_one_extent_are_handed_out),
                manager_test(a_file_that_names_a_block_outside_of_the_extents_is_foreign),
                manager_test(without_an_extent_nothing_is_allocated),
                manager_test(a_block_is_not_free_when_its_file_could_not_be_removed),
                manager_test(a_block_is_not_free_when_the_removal_may_not_survive_a_crash),
                manager_test(a_pod_whose_file_could_not_be_written_has_no_block),
                manager_test(a_file_that_was_written_in_part_and_cannot_be_removed_keeps_its_block),
                manager_test(a_pod_whose_file_vanished_gets_its_own_block_again),
                manager_test(a_pod_whose_file_vanished_keeps_its_block_when_the_file_cannot_be_written),
                manager_test(links_fifos_and_large_files_are_foreign_files),
                manager_test(a_uid_that_cannot_name_a_directory_gets_no_block),
                manager_test(looking_up_a_pod_s_file_does_not_create_its_directory),
                manager_test(a_reserved_block_is_given_to_its_pod_only),
                manager_test(a_reserved_pod_keeps_its_block_when_the_file_cannot_be_written),
                manager_test(a_reserved_block_of_another_size_is_kept_out_of_use_but_not_written),
                manager_test(a_read_only_manager_changes_nothing),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
