/* SPDX-License-Identifier: Apache-2.0 */
/* test-torture.c - regardless of which system call fails, and where the process dies, no block has
 * two owners and none is lost
 *
 * See tests/unit/torture.h. After every fault the affected manager allocates all blocks that it
 * believes to be free; then another one reads the files. A block with two owners shows as two files
 * with one block, hence a pod in quarantine. */
#include <unit/expect.h>

#include <stdio.h>
#include <sys/wait.h>

#include <unit/scratch.h>
#include <unit/torture.h>

#include "base/text.h"
#include "userns/manager.h"
#include "userns/mapping.h"

enum { UNIT = ND_IDS_UNIT, BLOCKS = 6 };

struct world {
        char *root; /* of all runs */
        char *kubelet_root;
        unsigned run;
        struct nd_userns_manager *manager;
};

static unsigned bit(enum fault_call call) {
        return 1u << call;
}

static int start(void **state) {
        struct world *world = nd_new(struct world);

        world->root = scratch_make();
        *state = world;
        return 0;
}

static int finish(void **state) {
        struct world *world = *state;

        nd_userns_manager_free(world->manager);
        free(world->kubelet_root);
        scratch_remove(&world->root);
        free(world);
        return 0;
}

static struct nd_error *open_manager(struct world *world, struct nd_userns_manager **ret) {
        return nd_userns_manager_open(&(struct nd_userns_settings) {.kubelet_root = world->kubelet_root,
                                                                    .ids_per_pod = UNIT,
                                                                    .max_pods = 1,
                                                                    .range = {.first = UNIT, .count = BLOCKS * UNIT}},
                                      ret);
}

static void put_block(struct world *world, const char *uid, uint32_t first) {
        nd_autofree char *text = nd_mapping_format(first, UNIT), *directory = nd_format("pods/%s", uid),
                         *file = nd_format("pods/%s/userns", uid);

        scratch_mkdir(world->kubelet_root, directory);
        scratch_text(world->kubelet_root, file, text);
}

/* A new root directory of the kubelet in which pods "a" and "b" have blocks. */
static void prepare_files(void *argument) {
        struct world *world = argument;
        char name[16];

        nd_userns_manager_done(&world->manager);
        free(world->kubelet_root);
        (void) snprintf(name, sizeof name, "%u", world->run++);
        scratch_mkdir(world->root, name);
        world->kubelet_root = nd_format("%s/%s", world->root, name);
        put_block(world, "a", 2 * UNIT);
        put_block(world, "b", 4 * UNIT);
}

static void prepare_manager(void *argument) {
        struct world *world = argument;

        prepare_files(world);
        expect_ok(open_manager(world, &world->manager));
}

/* Allocates everything that is free, and checks that it ends by exhaustion. */
static void hand_out_all(struct world *world) {
        struct nd_error *error = nullptr;
        struct nd_userns_range range;
        char uid[32];

        for (int i = 0; !error; i++) {
                assert_true(i <= BLOCKS);
                (void) snprintf(uid, sizeof uid, "filler-%d", i);
                error = nd_userns_manager_get(world->manager, uid, &range);
        }
        expect_error(error, ND_EXHAUSTED, "could not find an empty slot");
}

static void count_temporary(struct world *world, const char *uid) {
        nd_autofree char *directory = nd_format("pods/%s", uid);

        if (scratch_has(world->kubelet_root, directory))
                /* the file and nothing else */
                assert_true(scratch_entries(world->kubelet_root, directory) <= 1);
}

static void check_hands(void *argument, [[maybe_unused]] bool failed) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *second = nullptr;
        struct world *world = argument;
        struct nd_userns_count count;

        count_temporary(world, "a");
        count_temporary(world, "b");
        count_temporary(world, "c");
        if (world->manager)
                hand_out_all(world);
        expect_ok(open_manager(world, &second));
        count = nd_userns_manager_count(second);
        assert_int_equal(count.quarantined, 0);
        assert_int_equal(count.free + count.pods, BLOCKS);
}

static struct nd_error *run_open(void *argument) {
        struct world *world = argument;

        return open_manager(world, &world->manager);
}

static void opening_survives_every_single_fault_or_fails(void **state) {
        torture(&(struct torture) {.name = "nd_userns_manager_open",
                                   .noun = "",
                                   .calls = bit(FAULT_OPENAT),
                                   .prepare = prepare_files,
                                   .run = run_open,
                                   .check = check_hands,
                                   /* a file that could not be read is read a second time */
                                   .silent = true},
                *state);
}

static struct nd_error *run_get(void *argument) {
        struct world *world = argument;
        struct nd_userns_range range;

        return nd_userns_manager_get(world->manager, "c", &range);
}

static void a_new_pod_has_its_block_on_disk_or_no_block(void **state) {
        torture(&(struct torture) {.name = "nd_userns_manager_get of a new pod",
                                   .noun = "'",
                                   .calls = bit(FAULT_OPENAT) | bit(FAULT_WRITE) | bit(FAULT_FSYNC) | bit(FAULT_RENAMEAT) |
                                            bit(FAULT_MKDIRAT),
                                   .prepare = prepare_manager,
                                   .run = run_get,
                                   .check = check_hands},
                *state);
}

static struct nd_error *run_get_known(void *argument) {
        struct world *world = argument;
        struct nd_userns_range range = {.first = 2 * UNIT};
        struct nd_error *error = nd_userns_manager_get(world->manager, "a", &range);

        assert_int_equal(range.first, 2 * UNIT);
        return error;
}

static void a_pod_that_has_a_block_keeps_it(void **state) {
        torture(&(struct torture) {.name = "nd_userns_manager_get of a known pod",
                                   .noun = "'",
                                   .calls = bit(FAULT_OPENAT),
                                   .prepare = prepare_manager,
                                   .run = run_get_known,
                                   .check = check_hands},
                *state);
}

static void lose_file(void *argument) {
        struct world *world = argument;
        nd_autofree char *file = nullptr;

        prepare_manager(world);
        file = nd_format("%s/pods/a/userns", world->kubelet_root);
        assert_int_equal(unlink(file), 0);
}

/* No other pod may have this block, although no file contains it. */
static void check_vanished(void *argument, bool failed) {
        struct world *world = argument;
        struct nd_userns_range range = {};

        expect_ok(nd_userns_manager_get(world->manager, "a", &range));
        assert_int_equal(range.first, 2 * UNIT);
        check_hands(world, failed);
}

static void a_pod_whose_file_vanished_keeps_its_block_after_any_fault(void **state) {
        torture(&(struct torture) {.name = "nd_userns_manager_get of a pod without its file",
                                   .noun = "'",
                                   .calls = bit(FAULT_OPENAT) | bit(FAULT_WRITE) | bit(FAULT_FSYNC) | bit(FAULT_RENAMEAT),
                                   .prepare = lose_file,
                                   .run = run_get_known,
                                   .check = check_vanished},
                *state);
}

static struct nd_error *run_release(void *argument) {
        return nd_userns_manager_release(((struct world *) argument)->manager, "a");
}

static void a_released_block_is_free_only_when_its_file_is_durably_gone(void **state) {
        torture(&(struct torture) {.name = "nd_userns_manager_release",
                                   .noun = "a'",
                                   .calls = bit(FAULT_OPENAT) | bit(FAULT_UNLINKAT) | bit(FAULT_FSYNC),
                                   .prepare = prepare_manager,
                                   .run = run_release,
                                   .check = check_hands},
                *state);
}

static struct nd_error *run_sweep(void *argument) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};

        (void) nd_map_put(&alive, "b", nullptr);
        return nd_userns_manager_sweep(((struct world *) argument)->manager, &alive);
}

static void the_sweep_frees_what_it_could_remove_and_reports_the_rest(void **state) {
        torture(&(struct torture) {.name = "nd_userns_manager_sweep",
                                   .noun = "'",
                                   .calls = bit(FAULT_OPENAT) | bit(FAULT_UNLINKAT) | bit(FAULT_FSYNC),
                                   .prepare = prepare_manager,
                                   .run = run_sweep,
                                   .check = check_hands},
                *state);
}

/* A whole history: start, a new pod, a released one, a sweep with "b" and "c" alive. */
static struct nd_error *live(struct world *world) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *manager = nullptr;
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        struct nd_userns_range range;

        nd_try(open_manager(world, &manager));
        nd_try(nd_userns_manager_get(manager, "c", &range));
        nd_try(nd_userns_manager_release(manager, "a"));
        (void) nd_map_put(&alive, "b", nullptr);
        (void) nd_map_put(&alive, "c", nullptr);
        return nd_userns_manager_sweep(manager, &alive);
}

/* Runs one history, killed at its nth modifying call; false if it ended by itself. */
static bool killed_at(struct world *world, unsigned nth) {
        int status;
        pid_t pid;

        prepare_files(world);
        faults_kill_at(nth);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                struct nd_error *error = live(world);

                _exit(error ? 1 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        (void) faults_disarm();
        if (WIFSIGNALED(status))
                return true;
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
}

static void a_crash_at_any_call_tears_no_file_and_loses_no_block(void **state) {
        nd_cleanup(nd_map_done) struct nd_map nobody = {};
        struct world *world = *state;
        bool killed = true;
        unsigned nth;

        for (nth = 1; killed; nth++) {
                struct nd_userns_count count;

                killed = killed_at(world, nth);
                expect_ok(open_manager(world, &world->manager));
                count = nd_userns_manager_count(world->manager);
                assert_int_equal(count.quarantined, 0);
                assert_int_equal(count.free + count.pods, BLOCKS);
                expect_ok(nd_userns_manager_sweep(world->manager, &nobody));
                assert_int_equal(nd_userns_manager_count(world->manager).free, BLOCKS);
        }
        assert_true(nth > 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(opening_survives_every_single_fault_or_fails, start, finish),
                cmocka_unit_test_setup_teardown(a_new_pod_has_its_block_on_disk_or_no_block, start, finish),
                cmocka_unit_test_setup_teardown(a_pod_that_has_a_block_keeps_it, start, finish),
                cmocka_unit_test_setup_teardown(a_pod_whose_file_vanished_keeps_its_block_after_any_fault, start, finish),
                cmocka_unit_test_setup_teardown(a_released_block_is_free_only_when_its_file_is_durably_gone, start, finish),
                cmocka_unit_test_setup_teardown(the_sweep_frees_what_it_could_remove_and_reports_the_rest, start, finish),
                cmocka_unit_test_setup_teardown(a_crash_at_any_call_tears_no_file_and_loses_no_block, start, finish),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
