/* SPDX-License-Identifier: Apache-2.0 */
/* test-torture.c - fails every changing system call of src/sys once, in every place it is made; see
 * tests/unit/torture.h */
#include <unit/expect.h>

#include <sys/wait.h>

#include <unit/scratch.h>
#include <unit/torture.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/userns.h"
#include "sys/worker.h"

static unsigned bit(enum fault_call call) {
        return 1u << call;
}

struct world {
        char *root;
        int fd;
};

static int start(void **state) {
        struct world *world = nd_new(struct world);

        world->root = scratch_make();
        world->fd = open(world->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *state = world;
        return world->fd < 0;
}

static int finish(void **state) {
        struct world *world = *state;

        nd_close_fd(&world->fd);
        scratch_remove(&world->root);
        free(world);
        return 0;
}

static void old_contents(void *world) {
        scratch_text(((struct world *) world)->root, "record", "old");
}

static struct nd_error *replace(void *world) {
        return nd_file_replace(((struct world *) world)->fd, "record", "new contents", 12, 0600);
}

/* The complete old or the complete new file, and no other file. */
static void check_contents(void *argument, bool failed) {
        struct world *world = argument;
        nd_autofree char *text = scratch_read(world->root, "record");

        assert_non_null(text);
        if (!nd_streq(text, "old"))
                assert_string_equal(text, "new contents");
        if (!failed)
                assert_string_equal(text, "new contents");
        assert_int_equal(scratch_entries(world->root, "."), 1);
}

static void replacing_a_file_leaves_the_old_or_the_new_one_and_no_temporary_file(void **state) {
        torture(&(struct torture) {.name = "nd_file_replace",
                                   .noun = "'record'",
                                   .calls = bit(FAULT_OPENAT) | bit(FAULT_WRITE) | bit(FAULT_FSYNC) | bit(FAULT_RENAMEAT),
                                   .prepare = old_contents,
                                   .run = replace,
                                   .check = check_contents},
                *state);
}

static void a_temporary_file_stays_only_when_it_cannot_be_removed(void **state) {
        struct world *world = *state;

        old_contents(world);
        faults_arm(FAULT_RENAMEAT, 1, EIO, false);
        faults_also(FAULT_UNLINKAT, EIO);
        expect_error(replace(world), ND_INTERNAL, "rename over 'record'");
        assert_true(faults_disarm());
        expect_text(scratch_read(world->root, "record"), "old");
        assert_int_equal(scratch_entries(world->root, "."), 2);
}

static void a_process_killed_at_any_call_leaves_the_old_or_the_new_contents(void **state) {
        struct world *world = *state;
        int killed = 0;

        for (unsigned nth = 1;; nth++) {
                nd_autofree char *text = nullptr;
                int status;
                pid_t pid;

                old_contents(world);
                faults_kill_at(nth);
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        struct nd_error *error = replace(world);

                        _exit(error ? 1 : 0);
                }
                assert_int_equal(waitpid(pid, &status, 0), pid);
                (void) faults_disarm();
                text = scratch_read(world->root, "record");
                assert_non_null(text);
                if (!nd_streq(text, "old"))
                        assert_string_equal(text, "new contents");
                if (WIFEXITED(status)) {
                        assert_int_equal(WEXITSTATUS(status), 0);
                        break;
                }
                killed++;
        }
        assert_true(killed >= 5); /* create, write, sync, rename, sync of the directory */
}

static struct nd_error *remove_record(void *world) {
        return nd_file_remove(((struct world *) world)->fd, "record");
}

static void a_removal_that_may_not_be_durable_is_reported(void **state) {
        torture(&(struct torture) {.name = "nd_file_remove",
                                   .noun = "'record'",
                                   .calls = bit(FAULT_UNLINKAT) | bit(FAULT_FSYNC),
                                   .prepare = old_contents,
                                   .run = remove_record},
                *state);
}

static struct nd_error *read_things(void *argument) {
        struct world *world = argument;
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_autofree char *text = nullptr;

        nd_try(nd_dir_make(world->fd, "sub", 0700));
        nd_try(nd_dir_list(world->fd, "sub", 10, &names));
        return nd_file_read(world->fd, "record", 100, &text, nullptr);
}

static void reading_files_and_directories_leaks_nothing(void **state) {
        torture(&(struct torture) {.name = "nd_dir_make, nd_dir_list and nd_file_read",
                                   .noun = "'",
                                   .calls = bit(FAULT_OPENAT) | bit(FAULT_MKDIRAT),
                                   .prepare = old_contents,
                                   .run = read_things},
                *state);
}

static struct nd_error *make_userns_to(int *ret_fd) {
        static const struct nd_userns_map block = {.inside = 0, .outside = 1 << 20, .count = 65536};

        return nd_userns_make(
                &(struct nd_userns_plan) {
                        .uids = &block, .uid_count = 1, .gids = &block, .gid_count = 1, .charge_to_root = true},
                ret_fd);
}

static struct nd_error *make_userns([[maybe_unused]] void *world) {
        nd_autoclose int fd = -EBADF;
        struct nd_error *error = make_userns_to(&fd);

        assert_int_equal(fd >= 0, !error); /* outputs are written on success only */
        return error;
}

static bool privileged(void) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};

        expect_ok(nd_userns_maps_own("uid", &maps));
        return geteuid() == 0 && nd_userns_maps_identity(&maps);
}

static void making_a_user_namespace_leaves_no_child_and_no_descriptor(void **state) {
        if (!privileged())
                skip_because("mapping a range of IDs needs root in the initial user namespace");
        torture(&(struct torture) {.name = "nd_userns_make",
                                   .noun = "",
                                   .calls = bit(FAULT_PIPE2) | bit(FAULT_CLONE3) | bit(FAULT_UNSHARE) | bit(FAULT_OPENAT) |
                                            bit(FAULT_WRITE),
                                   .run = make_userns},
                *state);
}

/* All steps of a volume: a filesystem, idmapped, attached; a clone of it, attached elsewhere. */
static struct nd_error *mount_things(void *argument, [[maybe_unused]] int *ret_fd) {
        static const struct nd_mount_fs_option size = {"size", "65536"};
        struct world *world = argument;
        nd_autofree char *a = nd_format("%s/a", world->root), *b = nd_format("%s/b", world->root);
        nd_autoclose int userns = -EBADF, tree = -EBADF, clone = -EBADF;

        nd_try(nd_mount_namespace_private());
        nd_try(make_userns_to(&userns));
        nd_try(nd_mount_fs_make("tmpfs", &size, 1, 0, &tree));
        nd_try(nd_mount_idmap(tree, userns, false));
        nd_try(nd_mount_attach(tree, AT_FDCWD, a));
        nd_try(nd_mount_clone(AT_FDCWD, a, true, &clone));
        return nd_mount_attach(clone, AT_FDCWD, b);
}

static struct nd_error *mount_in_worker(void *world) {
        return nd_worker_run("mount things", mount_things, world, 60 * ND_SECOND_US, nullptr);
}

static void mounting_in_a_worker_names_the_step_that_failed(void **state) {
        struct world *world = *state;

        if (!privileged())
                skip_because("mounting needs root in the initial user namespace");
        scratch_mkdir(world->root, "a");
        scratch_mkdir(world->root, "b");
        torture(&(struct torture) {.name = "mounting",
                                   .noun = "",
                                   .calls = bit(FAULT_CLONE3) | bit(FAULT_UNSHARE) | bit(FAULT_MOUNT) | bit(FAULT_FSOPEN) |
                                            bit(FAULT_FSCONFIG) | bit(FAULT_FSMOUNT) | bit(FAULT_MOUNT_SETATTR) |
                                            bit(FAULT_MOVE_MOUNT) | bit(FAULT_OPEN_TREE) | bit(FAULT_PIPE2),
                                   .run = mount_in_worker},
                world);
}

static struct nd_error *work(void *argument, int *ret_fd) {
        *ret_fd = dup(((struct world *) argument)->fd);
        return nullptr;
}

static struct nd_error *run_worker(void *world) {
        nd_autoclose int fd = -EBADF;

        return nd_worker_run("the work", work, world, 60 * ND_SECOND_US, &fd);
}

static void a_worker_that_cannot_start_is_an_error_with_its_name(void **state) {
        torture(&(struct torture) {.name = "nd_worker_run", .noun = "the work", .calls = bit(FAULT_CLONE3), .run = run_worker},
                *state);
}

static struct nd_error *run_child([[maybe_unused]] void *world) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        static const char *const argv[] = {"/bin/cat", nullptr};

        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = argv,
                                                     .input = "in",
                                                     .input_length = 2,
                                                     .deadline_us = 60 * ND_SECOND_US,
                                                     .output_ceiling = 100},
                            &result));
        assert_string_equal(result.output, "in");
        return nullptr;
}

static void a_program_that_cannot_start_is_an_error_and_leaves_nothing(void **state) {
        torture(
                &(struct torture) {
                        .name = "nd_child_run", .noun = "", .calls = bit(FAULT_PIPE2) | bit(FAULT_CLONE3), .run = run_child},
                *state);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(replacing_a_file_leaves_the_old_or_the_new_one_and_no_temporary_file, start,
                                                finish),
                cmocka_unit_test_setup_teardown(a_temporary_file_stays_only_when_it_cannot_be_removed, start, finish),
                cmocka_unit_test_setup_teardown(a_process_killed_at_any_call_leaves_the_old_or_the_new_contents, start,
                                                finish),
                cmocka_unit_test_setup_teardown(a_removal_that_may_not_be_durable_is_reported, start, finish),
                cmocka_unit_test_setup_teardown(reading_files_and_directories_leaks_nothing, start, finish),
                cmocka_unit_test_setup_teardown(making_a_user_namespace_leaves_no_child_and_no_descriptor, start, finish),
                cmocka_unit_test_setup_teardown(mounting_in_a_worker_names_the_step_that_failed, start, finish),
                cmocka_unit_test_setup_teardown(a_worker_that_cannot_start_is_an_error_with_its_name, start, finish),
                cmocka_unit_test_setup_teardown(a_program_that_cannot_start_is_an_error_and_leaves_nothing, start, finish),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
