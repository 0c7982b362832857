/* SPDX-License-Identifier: Apache-2.0 */
/* test-manager.c - the kubelet's rules, and the deliberate differences that manager.h lists, each by its number
 *
 * tests/userns compares histories with the kubelet's own code; here is what must hold whatever the kubelet does. */
#include <unit/expect.h>

#include <stdio.h>
#include <sys/stat.h>

#include <unit/faults.h>
#include <unit/scratch.h>

#include "base/text.h"
#include "userns/manager.h"
#include "userns/mapping.h"

enum { UNIT = ND_IDS_UNIT };

struct world {
        char *root;
        struct nd_userns_settings settings;
        struct nd_userns_manager *manager;
};

static int start(void **state) {
        struct world *world = nd_new(struct world);

        world->root = scratch_make();
        world->settings = (struct nd_userns_settings) {
                .kubelet_root = world->root, .ids_per_pod = UNIT, .max_pods = 1, .range = {.first = UNIT, .count = 10 * UNIT}};
        *state = world;
        return 0;
}

static int finish(void **state) {
        struct world *world = *state;

        nd_userns_manager_free(world->manager);
        scratch_remove(&world->root);
        free(world);
        return 0;
}

/* Opens the manager, again if it is open: the files are all that stays. */
static void reopen(struct world *world) {
        nd_userns_manager_done(&world->manager);
        expect_ok(nd_userns_manager_open(&world->settings, &world->manager));
}

static void put_file(struct world *world, const char *uid, const char *text) {
        nd_autofree char *directory = nd_format("pods/%s", uid), *file = nd_format("pods/%s/userns", uid);

        scratch_mkdir(world->root, directory);
        scratch_text(world->root, file, text);
}

static void put_block(struct world *world, const char *uid, uint32_t first) {
        nd_autofree char *text = nd_mapping_format(first, UNIT);

        put_file(world, uid, text);
}

static char *get_file(struct world *world, const char *uid) {
        nd_autofree char *file = nd_format("pods/%s/userns", uid);

        return scratch_read(world->root, file);
}

static uint32_t get(struct world *world, const char *uid) {
        struct nd_id_range range = {};

        expect_ok(nd_userns_manager_get(world->manager, uid, &range));
        assert_int_equal(range.count, world->settings.ids_per_pod);
        return range.first;
}

/* How many blocks can still be handed out: takes them all, then gives them back. Fails when one is in `held`. */
static size_t handed_out(struct world *world, const uint32_t *held, size_t held_count) {
        struct nd_id_range range;
        struct nd_error *error;
        size_t count = 0;
        char uid[32];

        for (;; count++) {
                (void) snprintf(uid, sizeof uid, "filler-%zu", count);
                error = nd_userns_manager_get(world->manager, uid, &range);
                if (error)
                        break;
                for (size_t i = 0; i < held_count; i++)
                        assert_int_not_equal(range.first, held[i]);
        }
        expect_error(error, ND_EXHAUSTED, "could not find an empty slot to allocate a user namespace");
        for (size_t i = 0; i < count; i++) {
                (void) snprintf(uid, sizeof uid, "filler-%zu", i);
                expect_ok(nd_userns_manager_release(world->manager, uid));
        }
        return count;
}

struct found {
        const char *uid;
        bool there;
        char problem[300];
        size_t extents;
        uint64_t first;
};

static void look(const struct nd_userns_pod *pod, void *userdata) {
        struct found *found = userdata;

        if (!nd_streq(pod->uid, found->uid))
                return;
        found->there = true;
        found->extents = pod->extent_count;
        found->first = pod->extent_count > 0 ? pod->extents[0].first : 0;
        (void) snprintf(found->problem, sizeof found->problem, "%s", pod->problem ?: "");
}

static struct found find(struct world *world, const char *uid) {
        struct found found = {.uid = uid};

        nd_userns_manager_each(world->manager, look, &found);
        return found;
}

/* The kubelet's rules. */

static void a_pod_gets_a_block_that_is_in_its_file_before_it_is_returned(void **state) {
        struct world *world = *state;
        nd_autofree char *expected = nullptr;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        expected = nd_mapping_format(first, UNIT);
        expect_text(get_file(world, "a"), expected);
        assert_int_equal(first % UNIT, 0);
        assert_in_range(first, UNIT, 10 * UNIT);
}

static void asking_again_gives_the_same_block_and_so_does_a_restart(void **state) {
        struct world *world = *state;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        assert_int_equal(get(world, "a"), first);
        reopen(world);
        assert_int_equal(get(world, "a"), first);
        assert_int_equal(nd_userns_manager_count(world->manager).pods, 1);
        assert_int_equal(nd_userns_manager_count(world->manager).free, 9);
}

static void no_two_pods_get_one_block_until_none_is_left(void **state) {
        struct world *world = *state;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        assert_int_equal(handed_out(world, &first, 1), 9);
}

static void a_released_block_is_handed_out_again(void **state) {
        struct world *world = *state;

        reopen(world);
        (void) get(world, "a");
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_null(get_file(world, "a"));
        expect_ok(nd_userns_manager_release(world->manager, "a")); /* a pod without a block is fine */
        expect_ok(nd_userns_manager_release(world->manager, "never-seen"));
        assert_int_equal(handed_out(world, nullptr, 0), 10);
}

static void a_file_that_somebody_else_wrote_is_taken_over_when_the_pod_is_asked_for(void **state) {
        struct world *world = *state;
        const uint32_t block = 5 * UNIT;

        reopen(world);
        put_block(world, "a", block);
        assert_int_equal(get(world, "a"), block);
        assert_int_equal(handed_out(world, &block, 1), 9);
}

static void a_file_that_names_a_taken_block_is_refused_with_the_kubelet_s_words(void **state) {
        struct world *world = *state;
        struct nd_id_range range;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        put_block(world, "b", first);
        expect_error_text(nd_userns_manager_get(world->manager, "b", &range),
                          "user namespace: range picked for pod \"b\" already taken");
        put_block(world, "a", first == UNIT ? 2 * UNIT : UNIT);
        expect_error_text(nd_userns_manager_get(world->manager, "a", &range),
                          "user namespace: different user namespace range already used by pod \"a\"");
}

static void wrong_files_are_refused_with_the_kubelet_s_words(void **state) {
        static const struct {
                uint32_t host;
                uint32_t length;
                const char *error;
        } cases[] = {{2 * UNIT, 2 * UNIT, "user namespace: wrong user namespace length 131072"},
                     {2 * UNIT + 1, UNIT, "user namespace: wrong user namespace offset specified 131073"},
                     {11 * UNIT, UNIT, "user namespace: id 720896 is out of range"},
                     {0, UNIT, "user namespace: id 0 is out of range"}};
        struct world *world = *state;
        struct nd_id_range range;

        reopen(world);
        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *text = nd_mapping_format(cases[i].host, cases[i].length);

                put_file(world, "a", text);
                expect_error_text(nd_userns_manager_get(world->manager, "a", &range), cases[i].error);
        }
        put_file(world, "a", "{\"uidMappings\":[],\"gidMappings\":[]}");
        expect_error_text(nd_userns_manager_get(world->manager, "a", &range),
                          "user namespace: invalid user namespace configuration: no more than one mapping allowed.");
        assert_int_equal(nd_userns_manager_count(world->manager).free, 10);
}

static void an_empty_file_is_no_namespace_yet(void **state) {
        struct world *world = *state;

        put_file(world, "a", "");
        reopen(world);
        assert_false(find(world, "a").there);
        (void) get(world, "a");
        assert_true(find(world, "a").there);
}

static void a_range_that_cannot_be_used_is_refused_at_the_start(void **state) {
        struct world *world = *state;
        struct nd_userns_manager *manager = nullptr;

        world->settings.max_pods = 11;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned IDs are not enough to support 11 pods");
        world->settings.range.first = 100000;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned ID 100000 is not a multiple of 65536");
        assert_null(manager);
}

static void blocks_of_another_size_are_cut_to_that_size(void **state) {
        struct world *world = *state;

        world->settings.ids_per_pod = 3 * UNIT; /* does not divide 2^32 */
        world->settings.range = (struct nd_id_range) {.first = 3 * UNIT, .count = 12 * UNIT};
        reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).usable, 4);
        assert_int_equal(get(world, "a") % (3 * UNIT), 0);
        assert_int_equal(handed_out(world, nullptr, 0), 3);
}

static void the_sweep_releases_pods_that_do_not_live_and_those_without_a_directory(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct world *world = *state;
        nd_autofree char *directory = nd_format("%s/pods/gone", world->root), *file = nd_format("%s/userns", directory);
        uint32_t kept;

        reopen(world);
        kept = get(world, "alive");
        (void) get(world, "dead");
        (void) get(world, "gone");
        assert_int_equal(unlink(file), 0);
        assert_int_equal(rmdir(directory), 0);
        (void) nd_map_put(&alive, "alive", nullptr);
        (void) nd_map_put(&alive, "gone",
                          nullptr); /* without a directory it is released though it lives, as the kubelet does */
        expect_ok(nd_userns_manager_sweep(world->manager, &alive));
        assert_null(get_file(world, "dead"));
        assert_int_equal(nd_userns_manager_count(world->manager).free, 9);
        assert_int_equal(get(world, "alive"), kept);
}

static void the_sweep_needs_the_directory_of_the_pods(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct world *world = *state;

        reopen(world);
        expect_error(nd_userns_manager_sweep(world->manager, &alive), ND_NOT_FOUND, "user namespace: read pods from disk: ");
}

/* Deliberate difference 1. */
static void the_block_that_ends_at_2_to_the_32_is_never_handed_out(void **state) {
        struct world *world = *state;

        world->settings.range = (struct nd_id_range) {.first = UINT32_MAX - 3 * UNIT + 1, .count = 3 * UNIT};
        world->settings.max_pods = 2;
        reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).usable, 2);
        assert_int_equal(handed_out(world, &(uint32_t) {UINT32_MAX - UNIT + 1}, 1), 2);
}

static void the_block_that_ends_at_2_to_the_32_is_no_room_for_a_pod(void **state) {
        struct world *world = *state;
        struct nd_userns_manager *manager;

        world->settings.range = (struct nd_id_range) {.first = UINT32_MAX - 3 * UNIT + 1, .count = 3 * UNIT};
        world->settings.max_pods = 3;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned IDs are not enough to support 3 pods");
}

static void a_pod_that_a_kubelet_gave_the_last_block_keeps_it(void **state) {
        struct world *world = *state;
        const uint32_t last = UINT32_MAX - UNIT + 1;
        struct nd_id_range range;

        world->settings.range = nd_range_default(UNIT);
        put_block(world, "a", last);
        reopen(world);
        assert_int_equal(get(world, "a"), last);
        put_block(world, "b", last);
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_INVALID, "already taken");
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(nd_userns_manager_count(world->manager).free, nd_userns_manager_count(world->manager).usable);
}

/* Deliberate difference 3. */
static void a_file_that_is_no_json_quarantines_its_pod_and_the_blocks_it_names(void **state) {
        struct world *world = *state;
        const uint32_t named = 4 * UNIT;
        struct nd_id_range range;

        put_file(world, "bad", "{\"uidMappings\":[{\"hostId\":262144,\"contai");
        put_block(world, "good", 2 * UNIT);
        reopen(world);
        expect_contains(find(world, "bad").problem, "invalid user namespace mappings file: ");
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 1);
        assert_int_equal(get(world, "good"), 2 * UNIT);
        assert_int_equal(handed_out(world, &named, 1), 8);
        expect_error(nd_userns_manager_get(world->manager, "bad", &range), ND_INVALID, "invalid user namespace mappings file");
        assert_int_equal(handed_out(world, &named, 1), 8); /* still, after it was asked for */
}

static void a_foreign_block_is_quarantined_as_far_as_it_reaches(void **state) {
        struct world *world = *state;
        nd_autofree char *text = nd_mapping_format(2 * UNIT + 1, 2 * UNIT); /* touches three blocks */

        put_file(world, "bad", text);
        reopen(world);
        expect_contains(find(world, "bad").problem, "wrong user namespace length 131072");
        assert_int_equal(handed_out(world, (uint32_t[]) {2 * UNIT, 3 * UNIT, 4 * UNIT}, 3), 7);
}

static void a_file_with_two_mappings_quarantines_the_blocks_of_both(void **state) {
        struct world *world = *state;

        put_file(world, "bad",
                 "{\"uidMappings\":[{\"hostId\":131072,\"length\":65536},{\"hostId\":327680,\"length\":65536}],"
                 "\"gidMappings\":[{\"hostId\":131072,\"length\":65536}]}");
        reopen(world);
        expect_contains(find(world, "bad").problem, "no more than one mapping allowed.");
        assert_int_equal(handed_out(world, (uint32_t[]) {2 * UNIT, 5 * UNIT}, 2), 8);
}

static void different_blocks_for_users_and_groups_are_both_quarantined(void **state) {
        struct world *world = *state;

        put_file(world, "bad",
                 "{\"uidMappings\":[{\"hostId\":131072,\"length\":65536}],"
                 "\"gidMappings\":[{\"hostId\":327680,\"length\":65536}]}");
        reopen(world);
        assert_int_equal(handed_out(world, (uint32_t[]) {2 * UNIT, 5 * UNIT}, 2), 8);
}

static void of_two_files_with_one_block_one_pod_keeps_it_and_the_other_is_quarantined(void **state) {
        struct world *world = *state;
        const uint32_t block = 3 * UNIT;
        struct nd_id_range range;

        put_block(world, "a", block);
        put_block(world, "b", block);
        reopen(world);
        assert_int_equal(get(world, "a"), block);
        expect_contains(find(world, "b").problem, "range picked for pod \"b\" already taken");
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_INVALID, "already taken");
        assert_int_equal(handed_out(world, &block, 1), 9);

        /* The block is free only when both have let go of it. */
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(handed_out(world, &block, 1), 9);
        expect_ok(nd_userns_manager_release(world->manager, "b"));
        assert_int_equal(handed_out(world, nullptr, 0), 10);
}

static void a_bad_file_does_not_take_a_block_from_the_pod_that_has_it(void **state) {
        struct world *world = *state;

        put_file(world, "a-bad-one", "{\"uidMappings\":[{\"hostId\":196608,"); /* sorts before the good one */
        put_block(world, "good", 3 * UNIT);
        reopen(world);
        assert_int_equal(get(world, "good"), 3 * UNIT);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 1);
}

static void the_loser_of_a_conflict_gets_the_block_when_the_winner_is_gone(void **state) {
        struct world *world = *state;

        put_block(world, "a", 3 * UNIT);
        put_block(world, "b", 3 * UNIT);
        reopen(world);
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(get(world, "b"), 3 * UNIT);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 0);
}

static void a_mended_file_ends_the_quarantine(void **state) {
        struct world *world = *state;
        const uint32_t mended = 7 * UNIT;

        put_file(world, "bad", "{\"uidMappings\":[{\"hostId\":262144,");
        reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 1);
        put_block(world, "bad", mended);
        assert_int_equal(get(world, "bad"), mended);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 0);
        assert_string_equal(find(world, "bad").problem, "");
        assert_int_equal(handed_out(world, &mended, 1), 9); /* what the bad file named is free again */
}

static void a_removed_file_ends_the_quarantine_too(void **state) {
        struct world *world = *state;
        nd_autofree char *file = nd_format("%s/pods/bad/userns", world->root);

        put_file(world, "bad", "nonsense");
        reopen(world);
        assert_int_equal(unlink(file), 0);
        (void) get(world, "bad");
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 0);
        assert_int_equal(nd_userns_manager_count(world->manager).pods, 1);
}

static void the_sweep_releases_a_quarantined_pod_that_does_not_live(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct world *world = *state;

        put_file(world, "bad", "{\"uidMappings\":[{\"hostId\":262144,");
        put_file(world, "kept", "nonsense");
        (void) nd_map_put(&alive, "kept", nullptr);
        reopen(world);
        expect_ok(nd_userns_manager_sweep(world->manager, &alive));
        assert_false(find(world, "bad").there);
        assert_true(find(world, "kept").there);
        assert_null(get_file(world, "bad"));
        assert_int_equal(handed_out(world, nullptr, 0), 10);
}

static void a_file_that_we_had_no_means_to_read_stops_the_start(void **state) {
        struct world *world = *state;
        struct nd_userns_manager *manager = nullptr;

        put_block(world, "a", 3 * UNIT);
        faults_arm(FAULT_OPENAT, 2, EMFILE, true); /* the first opens pods/ */
        expect_error(nd_userns_manager_open(&world->settings, &manager), ND_EXHAUSTED,
                     "record pod mappings for existing pod \"a\": ");
        assert_true(faults_disarm());
        assert_null(manager);
}

static void a_file_on_a_bad_disk_quarantines_its_pod_only(void **state) {
        struct world *world = *state;

        put_block(world, "a", 3 * UNIT);
        faults_arm(FAULT_OPENAT, 2, EIO, true);
        reopen(world);
        assert_true(faults_disarm());
        expect_contains(find(world, "a").problem, "Input/output error");
}

/* Deliberate difference 4. */
static void in_a_user_namespace_only_blocks_within_one_extent_are_handed_out(void **state) {
        struct nd_extent pieces[] = {{.first = 2 * UNIT, .count = UNIT + UNIT / 2}, /* one block and a half */
                                     {.first = 3 * UNIT + UNIT / 2, .count = UNIT}, /* across two blocks */
                                     {.first = 6 * UNIT, .count = 2 * UNIT}};       /* two blocks */
        nd_extents delegated = {.items = pieces, .count = 3};
        struct world *world = *state;

        world->settings.delegated = &delegated;
        reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).usable, 3);
        assert_int_equal(handed_out(world, (uint32_t[]) {UNIT, 3 * UNIT, 4 * UNIT, 5 * UNIT, 8 * UNIT}, 5), 3);
}

static void a_file_that_names_a_block_outside_of_the_extents_is_foreign(void **state) {
        struct nd_extent piece = {.first = 2 * UNIT, .count = UNIT};
        nd_extents delegated = {.items = &piece, .count = 1};
        struct world *world = *state;

        put_block(world, "a", 5 * UNIT);
        put_block(world, "b", 2 * UNIT);
        world->settings.delegated = &delegated;
        reopen(world);
        expect_contains(find(world, "a").problem, "id 327680 is out of range");
        assert_int_equal(get(world, "b"), 2 * UNIT);
}

static void with_no_extent_at_all_nothing_can_be_handed_out(void **state) {
        struct world *world = *state;
        struct nd_userns_manager *manager = nullptr;
        nd_extents none = {};

        world->settings.delegated = &none;
        expect_error_text(nd_userns_manager_open(&world->settings, &manager),
                          "kubelet user assigned IDs are not enough to support 1 pods");
        assert_null(manager);
}

/* Deliberate difference 5. */
static void a_block_is_not_free_when_its_file_could_not_be_removed(void **state) {
        struct world *world = *state;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        faults_arm(FAULT_UNLINKAT, 1, EIO, false);
        expect_error(nd_userns_manager_release(world->manager, "a"), ND_INTERNAL, "pod 'a': remove 'userns'");
        assert_true(faults_disarm());
        assert_int_equal(handed_out(world, &first, 1), 9);
        assert_int_equal(get(world, "a"), first);
        expect_ok(nd_userns_manager_release(world->manager, "a"));
        assert_int_equal(handed_out(world, nullptr, 0), 10);
}

static void a_block_is_not_free_when_the_removal_may_not_survive_a_crash(void **state) {
        struct world *world = *state;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        faults_arm(FAULT_FSYNC, 1, EIO, false);
        expect_error(nd_userns_manager_release(world->manager, "a"), ND_INTERNAL, "pod 'a': sync");
        assert_true(faults_disarm());
        assert_int_equal(handed_out(world, &first, 1), 9);
}

static void a_pod_whose_file_could_not_be_written_has_no_block(void **state) {
        struct world *world = *state;
        struct nd_id_range range = {.first = 7};

        reopen(world);
        faults_arm(FAULT_FSYNC, 1, ENOSPC, false);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_EXHAUSTED, "create user namespace: ");
        assert_true(faults_disarm());
        assert_int_equal(range.first, 7);
        assert_false(find(world, "a").there);
        assert_int_equal(handed_out(world, nullptr, 0), 10);
}

static void a_file_that_was_written_in_part_and_cannot_be_removed_keeps_its_block(void **state) {
        struct world *world = *state;
        struct nd_id_range range;
        struct found found;
        uint32_t first;

        reopen(world);
        faults_arm(FAULT_FSYNC, 3, EIO, false); /* pods/, the file, the directory after the rename */
        faults_also(FAULT_UNLINKAT, EIO);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_INTERNAL, "create user namespace: ");
        assert_true(faults_disarm());
        found = find(world, "a");
        assert_true(found.there);
        first = (uint32_t) found.first;
        assert_int_equal(handed_out(world, &first, 1), 9);
}

/* Deliberate difference 6. */
static void a_pod_whose_file_vanished_gets_its_own_block_again(void **state) {
        struct world *world = *state;
        nd_autofree char *file = nd_format("%s/pods/a/userns", world->root), *text = nullptr, *expected = nullptr;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        assert_int_equal(unlink(file), 0);
        assert_int_equal(get(world, "a"), first);
        text = get_file(world, "a");
        expected = nd_mapping_format(first, UNIT);
        assert_string_equal(text, expected);
        assert_int_equal(nd_userns_manager_count(world->manager).free, 9);
}

static void a_pod_whose_file_vanished_keeps_its_block_when_the_file_cannot_be_written(void **state) {
        struct world *world = *state;
        nd_autofree char *file = nd_format("%s/pods/a/userns", world->root);
        struct nd_id_range range;
        uint32_t first;

        reopen(world);
        first = get(world, "a");
        assert_int_equal(unlink(file), 0);
        faults_arm(FAULT_FSYNC, 1, ENOSPC, false);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_EXHAUSTED, "create user namespace: ");
        assert_true(faults_disarm());
        assert_int_equal(handed_out(world, &first, 1), 9); /* its containers run with these IDs */
        assert_int_equal(get(world, "a"), first);
}

/* Deliberate difference 7. */
static void links_fifos_and_large_files_are_foreign_files(void **state) {
        static char large[ND_MAPPING_CEILING + 1];
        struct world *world = *state;
        nd_autofree char *link = nd_format("%s/pods/link/userns", world->root),
                         *fifo = nd_format("%s/pods/fifo/userns", world->root);

        put_block(world, "good", 2 * UNIT);
        scratch_mkdir(world->root, "pods/link");
        scratch_mkdir(world->root, "pods/fifo");
        scratch_mkdir(world->root, "pods/large");
        assert_int_equal(symlink("../good/userns", link), 0);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        memset(large, ' ', sizeof large);
        scratch_write(world->root, "pods/large/userns", large, sizeof large);
        reopen(world);
        assert_int_equal(nd_userns_manager_count(world->manager).quarantined, 3);
        expect_contains(find(world, "link").problem, "symbolic links");
        expect_contains(find(world, "fifo").problem, "not a regular file");
        expect_contains(find(world, "large").problem, "more than 65536 bytes");
        assert_int_equal(get(world, "good"), 2 * UNIT);
}

/* Deliberate difference 8. */
static void a_uid_that_cannot_name_a_directory_gets_no_block(void **state) {
        struct world *world = *state;
        struct nd_id_range range;

        reopen(world);
        expect_error(nd_userns_manager_get(world->manager, "../etc", &range), ND_INVALID, "cannot name a directory");
        expect_error(nd_userns_manager_get(world->manager, "", &range), ND_INVALID, "cannot name a directory");
        assert_int_equal(nd_userns_manager_count(world->manager).free, 10);
}

/* Deliberate difference 9. */
static void looking_for_a_pod_s_file_does_not_make_its_directory(void **state) {
        struct world *world = *state;
        struct nd_id_range range;

        world->settings.range.count = UNIT;
        reopen(world);
        (void) get(world, "a");
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_EXHAUSTED, "could not find an empty slot");
        assert_false(scratch_has(world->root, "pods/b"));
        reopen(world);
        expect_ok(nd_userns_manager_release(world->manager, "c"));
        assert_false(scratch_has(world->root, "pods/c"));
}

/* What the runtime reports. */

static void a_reserved_block_is_the_pod_s_and_nobody_else_s(void **state) {
        struct world *world = *state;
        const uint32_t block = 6 * UNIT;

        reopen(world);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_id_range) {.first = block, .count = UNIT});
        assert_null(get_file(world, "a")); /* nothing is written */
        assert_int_equal(handed_out(world, &block, 1), 9);
        assert_int_equal(get(world, "a"), block);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_id_range) {.first = UNIT, .count = UNIT});
        assert_int_equal(get(world, "a"), block);
}

static void a_reserved_pod_keeps_its_block_when_the_file_cannot_be_written(void **state) {
        struct world *world = *state;
        const uint32_t block = 6 * UNIT;
        struct nd_id_range range;

        reopen(world);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_id_range) {.first = block, .count = UNIT});
        faults_arm(FAULT_WRITE, 1, ENOSPC, false);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_EXHAUSTED, "create user namespace: ");
        assert_true(faults_disarm());
        assert_int_equal(handed_out(world, &block, 1), 9);
}

static void a_reserved_block_of_another_shape_is_kept_free_of_others_but_not_written_as_ours(void **state) {
        struct world *world = *state;
        struct nd_id_range range;

        reopen(world);
        nd_userns_manager_reserve(world->manager, "a", (struct nd_id_range) {.first = 2 * UNIT + 5, .count = 10});
        assert_int_equal(handed_out(world, &(uint32_t) {2 * UNIT}, 1), 9);
        expect_error(nd_userns_manager_get(world->manager, "a", &range), ND_INVALID, "wrong user namespace length 10");
        assert_null(get_file(world, "a"));
}

static void a_manager_that_only_looks_changes_nothing(void **state) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct world *world = *state;
        struct nd_id_range range;

        put_block(world, "a", 2 * UNIT);
        world->settings.read_only = true;
        reopen(world);
        expect_error(nd_userns_manager_get(world->manager, "b", &range), ND_PRECONDITION, "only looks");
        expect_error(nd_userns_manager_release(world->manager, "a"), ND_PRECONDITION, "only looks");
        expect_error(nd_userns_manager_sweep(world->manager, &alive), ND_PRECONDITION, "only looks");
        assert_int_equal(nd_userns_manager_count(world->manager).pods, 1);
        assert_true(scratch_has(world->root, "pods/a/userns"));
        assert_false(scratch_has(world->root, "pods/b"));
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void) {
        const struct CMUnitTest tests[] = {
                with_world(a_pod_gets_a_block_that_is_in_its_file_before_it_is_returned),
                with_world(asking_again_gives_the_same_block_and_so_does_a_restart),
                with_world(no_two_pods_get_one_block_until_none_is_left),
                with_world(a_released_block_is_handed_out_again),
                with_world(a_file_that_somebody_else_wrote_is_taken_over_when_the_pod_is_asked_for),
                with_world(a_file_that_names_a_taken_block_is_refused_with_the_kubelet_s_words),
                with_world(wrong_files_are_refused_with_the_kubelet_s_words),
                with_world(an_empty_file_is_no_namespace_yet),
                with_world(a_range_that_cannot_be_used_is_refused_at_the_start),
                with_world(blocks_of_another_size_are_cut_to_that_size),
                with_world(the_sweep_releases_pods_that_do_not_live_and_those_without_a_directory),
                with_world(the_sweep_needs_the_directory_of_the_pods),
                with_world(the_block_that_ends_at_2_to_the_32_is_never_handed_out),
                with_world(the_block_that_ends_at_2_to_the_32_is_no_room_for_a_pod),
                with_world(a_pod_that_a_kubelet_gave_the_last_block_keeps_it),
                with_world(a_file_that_is_no_json_quarantines_its_pod_and_the_blocks_it_names),
                with_world(a_foreign_block_is_quarantined_as_far_as_it_reaches),
                with_world(a_file_with_two_mappings_quarantines_the_blocks_of_both),
                with_world(different_blocks_for_users_and_groups_are_both_quarantined),
                with_world(of_two_files_with_one_block_one_pod_keeps_it_and_the_other_is_quarantined),
                with_world(a_bad_file_does_not_take_a_block_from_the_pod_that_has_it),
                with_world(the_loser_of_a_conflict_gets_the_block_when_the_winner_is_gone),
                with_world(a_mended_file_ends_the_quarantine),
                with_world(a_removed_file_ends_the_quarantine_too),
                with_world(the_sweep_releases_a_quarantined_pod_that_does_not_live),
                with_world(a_file_that_we_had_no_means_to_read_stops_the_start),
                with_world(a_file_on_a_bad_disk_quarantines_its_pod_only),
                with_world(in_a_user_namespace_only_blocks_within_one_extent_are_handed_out),
                with_world(a_file_that_names_a_block_outside_of_the_extents_is_foreign),
                with_world(with_no_extent_at_all_nothing_can_be_handed_out),
                with_world(a_block_is_not_free_when_its_file_could_not_be_removed),
                with_world(a_block_is_not_free_when_the_removal_may_not_survive_a_crash),
                with_world(a_pod_whose_file_could_not_be_written_has_no_block),
                with_world(a_file_that_was_written_in_part_and_cannot_be_removed_keeps_its_block),
                with_world(a_pod_whose_file_vanished_gets_its_own_block_again),
                with_world(a_pod_whose_file_vanished_keeps_its_block_when_the_file_cannot_be_written),
                with_world(links_fifos_and_large_files_are_foreign_files),
                with_world(a_uid_that_cannot_name_a_directory_gets_no_block),
                with_world(looking_for_a_pod_s_file_does_not_make_its_directory),
                with_world(a_reserved_block_is_the_pod_s_and_nobody_else_s),
                with_world(a_reserved_pod_keeps_its_block_when_the_file_cannot_be_written),
                with_world(a_reserved_block_of_another_shape_is_kept_free_of_others_but_not_written_as_ours),
                with_world(a_manager_that_only_looks_changes_nothing),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
