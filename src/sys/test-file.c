/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <unit/faults.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include "sys/calls.h"
#include "sys/file.h"

static int open_directory(const char *path) {
        int fd = -EBADF;

        expect_ok(nd_dir_open(AT_FDCWD, path, &fd));
        return fd;
}

/* Until it is killed. */
[[noreturn]] static void rename_forever(int dir_fd) {
        for (;;) {
                (void) renameat(dir_fd, "one", dir_fd, "two");
                (void) renameat(dir_fd, "two", dir_fd, "one");
        }
}

static void renames_elsewhere_do_not_fail_an_open_in_a_root([[maybe_unused]] void **state) {
        enum { OPENS = 5000 };
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        pid_t child;

        scratch_mkdir(root, "one");
        scratch_mkdir(root, "tree");
        scratch_mkdir(root, "tree/below");
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
                rename_forever(fd);
        for (size_t i = 0; i < OPENS; i++) {
                nd_autoclose int opened = nd_sys->openat2(fd, "tree/below/../below/../below/../below/..", &how, sizeof how);

                if (opened < 0)
                        (void) kill(child, SIGKILL);
                assert_true(opened >= 0);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, nullptr, 0), child);
}

static void a_directory_behind_a_symbolic_link_is_not_opened([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        int never = 7;

        scratch_mkdir(root, "real");
        scratch_text(root, "file", "x");
        assert_int_equal(symlinkat("real", fd, "link"), 0);
        expect_error(nd_dir_open(fd, "link", &never), ND_INTERNAL, "open directory 'link'");
        expect_error(nd_dir_open(fd, "file", &never), ND_INTERNAL, "open directory 'file'");
        expect_error(nd_dir_open(fd, "none", &never), ND_NOT_FOUND, "open directory 'none'");
        assert_int_equal(never, 7);
}

static void making_an_existing_directory_succeeds_unless_it_is_a_file([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);

        expect_ok(nd_dir_make(fd, "a", 0750));
        expect_ok(nd_dir_make(fd, "a", 0750));
        scratch_text(root, "file", "x");
        assert_int_equal(symlinkat("a", fd, "link"), 0);
        expect_error(nd_dir_make(fd, "file", 0750), ND_EXISTS, "make directory 'file': Not a directory");
        expect_error(nd_dir_make(fd, "link", 0750), ND_EXISTS, "make directory 'link': Not a directory");
        expect_error(nd_dir_make(fd, "no/where", 0750), ND_NOT_FOUND, "make directory 'no/where'");
}

static void a_list_has_the_directories_only_and_in_order([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        scratch_mkdir(root, "b");
        scratch_mkdir(root, "a");
        scratch_mkdir(root, ".hidden");
        scratch_text(root, "file", "x");
        assert_int_equal(symlinkat("a", fd, "link"), 0);
        assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
        expect_ok(nd_dir_list(AT_FDCWD, root, 10, &names));
        assert_int_equal(names.count, 3);
        assert_string_equal(names.items[0], ".hidden");
        assert_string_equal(names.items[1], "a");
        assert_string_equal(names.items[2], "b");
}

static void a_list_longer_than_its_ceiling_is_an_error_and_an_empty_one_is_not([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        expect_ok(nd_dir_list(AT_FDCWD, root, 0, &names));
        assert_int_equal(names.count, 0);
        scratch_mkdir(root, "a");
        scratch_mkdir(root, "b");
        expect_error(nd_dir_list(AT_FDCWD, root, 1, &names), ND_EXHAUSTED, "more than 1 subdirectories");
        expect_error(nd_dir_list(AT_FDCWD, "/nonexistent", 1, &names), ND_NOT_FOUND, "'/nonexistent'");
}

static void a_regular_file_is_read_whole([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        nd_autofree char *bytes = nullptr, *empty = nullptr;
        size_t length;

        scratch_write(root, "file", "a\0b", 3);
        scratch_text(root, "empty", "");
        expect_ok(nd_file_read(fd, "file", 3, &bytes, &length));
        assert_int_equal(length, 3);
        assert_memory_equal(bytes, "a\0b", 4); /* with the terminator */
        expect_ok(nd_file_read(fd, "empty", 0, &empty, nullptr));
        assert_string_equal(empty, "");
}

static void a_null_byte_is_an_error_where_text_is_expected([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        char *text = nullptr;

        scratch_write(root, "file", "a\0b", 3);
        expect_error(nd_file_read(fd, "file", 100, &text, nullptr), ND_INVALID, "contains a null byte");
        assert_null(text);
}

static void more_than_the_ceiling_is_not_read([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        char *text = nullptr;

        scratch_text(root, "file", "12345");
        expect_error(nd_file_read(fd, "file", 4, &text, nullptr), ND_EXHAUSTED, "read 'file': more than 4 bytes");
        assert_null(text);
}

static void links_fifos_devices_and_directories_are_not_read_and_never_block([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        char *text = nullptr;

        scratch_text(root, "file", "x");
        scratch_mkdir(root, "directory");
        assert_int_equal(symlinkat("file", fd, "link"), 0);
        assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
        expect_error(nd_file_read(fd, "link", 10, &text, nullptr), ND_INTERNAL,
                     "open 'link': Too many levels of symbolic links");
        expect_error(nd_file_read(fd, "fifo", 10, &text, nullptr), ND_INVALID, "not a regular file");
        expect_error(nd_file_read(fd, "directory", 10, &text, nullptr), ND_INVALID, "Is a directory");
        expect_error(nd_file_read(AT_FDCWD, "/dev/zero", 10, &text, nullptr), ND_INVALID, "not a regular file");
        expect_error(nd_file_read(fd, "none", 10, &text, nullptr), ND_NOT_FOUND, "open 'none'");
}

static void what_a_user_names_is_read_through_links_and_from_pipes([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        nd_autofree char *linked = nullptr, *found = nullptr, *piped = nullptr;
        nd_autofree char *path = nd_format("%s/link", root), *pipe_path = nullptr;
        size_t length = 0;
        int ends[2];

        scratch_text(root, "file", "text");
        assert_int_equal(symlinkat("file", fd, "link"), 0);
        expect_ok(nd_file_read_any(path, 100, &linked, &length));
        assert_int_equal(length, 4);
        assert_string_equal(linked, "text");
        expect_ok(nd_file_read_linked(fd, "link", 100, &found, &length));
        assert_string_equal(found, "text");

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(write(ends[1], "piped", 5), 5);
        (void) close(ends[1]);
        pipe_path = nd_format("/dev/fd/%d", ends[0]);
        expect_ok(nd_file_read_any(pipe_path, 100, &piped, &length));
        assert_string_equal(piped, "piped");
        (void) close(ends[0]);
}

static void what_a_user_names_has_a_ceiling_and_what_is_found_is_a_file([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        size_t length = 0;
        char *never = nullptr;

        assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
        expect_error(nd_file_read_any("/dev/zero", 1000, &never, &length), ND_EXHAUSTED,
                     "read '/dev/zero': more than 1000 bytes");
        expect_error(nd_file_read_any(root, 1000, &never, &length), ND_INTERNAL, "Is a directory");
        expect_error(nd_file_read_any("/no/where", 1000, &never, &length), ND_NOT_FOUND, "open '/no/where'");
        expect_error(nd_file_read_linked(fd, "fifo", 1000, &never, &length), ND_INVALID, "not a regular file");
        assert_null(never);
}

static void kernel_files_are_read_though_they_have_no_size([[maybe_unused]] void **state) {
        nd_autofree char *text = nullptr;

        expect_ok(nd_file_read_kernel("/proc/self/status", 64 * 1024, &text));
        expect_contains(text, "Uid:");
        expect_error(nd_file_read_kernel("/proc/self/status", 10, &text), ND_EXHAUSTED, "more than 10 bytes");
        expect_error(nd_file_read_kernel("/proc/nonexistent", 10, &text), ND_NOT_FOUND, "/proc/nonexistent");
        expect_error(nd_file_read_kernel("/proc/self", 10, &text), ND_INTERNAL, "read '/proc/self'");
}

static void replacing_leaves_the_new_contents_the_mode_and_nothing_else([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        struct stat st;

        expect_ok(nd_file_replace(fd, "file", "old", 3, 0600));
        expect_ok(nd_file_replace(fd, "file", "new!", 4, 0600));
        expect_text(scratch_read(root, "file"), "new!");
        assert_int_equal(fstatat(fd, "file", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(scratch_entries(root, "."), 1);
}

static void a_file_is_given_to_a_group_but_not_through_a_link([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        struct stat st;

        scratch_text(root, "file", "text");
        assert_int_equal(symlinkat("file", fd, "link"), 0);
        expect_error(nd_file_give(fd, "link", getuid(), getgid(), 0600), ND_INTERNAL, "open 'link'");
        expect_error(nd_file_give(fd, "missing", getuid(), getgid(), 0600), ND_NOT_FOUND, "open 'missing'");
        expect_ok(nd_file_give(fd, "file", getuid(), getgid(), 0640));
        assert_int_equal(fstatat(fd, "file", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
        assert_int_equal(st.st_gid, getgid());
}

static void replacing_a_symbolic_link_does_not_touch_its_target([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);
        struct stat st;

        scratch_text(root, "victim", "keep");
        assert_int_equal(symlinkat("victim", fd, "file"), 0);
        expect_ok(nd_file_replace(fd, "file", "new", 3, 0600));
        expect_text(scratch_read(root, "victim"), "keep");
        assert_int_equal(fstatat(fd, "file", &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_true(S_ISREG(st.st_mode));
}

static void a_short_write_goes_on_where_it_stopped([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);

        faults_short_writes(1);
        expect_ok(nd_file_replace(fd, "file", "0123456789", 10, 0600));
        (void) faults_disarm();
        expect_text(scratch_read(root, "file"), "0123456789");
}

static void an_interrupted_write_is_tried_again([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);

        faults_arm(FAULT_WRITE, 1, EINTR, false);
        expect_ok(nd_file_replace(fd, "file", "0123456789", 10, 0600));
        assert_true(faults_disarm());
        expect_text(scratch_read(root, "file"), "0123456789");
}

static void a_name_collision_is_retried_a_limited_number_of_times([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);

        faults_arm(FAULT_OPENAT, 1, EEXIST, false);
        expect_ok(nd_file_replace(fd, "file", "x", 1, 0600));
        assert_true(faults_disarm());
        faults_arm(FAULT_OPENAT, 1, EEXIST, true);
        expect_error(nd_file_replace(fd, "file", "y", 1, 0600), ND_INTERNAL, "create a temporary file beside 'file'");
        assert_true(faults_disarm());
        expect_text(scratch_read(root, "file"), "x");
}

static void removing_a_missing_file_succeeds([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open_directory(root);

        scratch_text(root, "file", "x");
        scratch_mkdir(root, "directory");
        expect_ok(nd_file_remove(fd, "file"));
        assert_false(scratch_has(root, "file"));
        expect_ok(nd_file_remove(fd, "file"));
        expect_error(nd_file_remove(fd, "directory"), ND_INTERNAL, "remove 'directory'");
}

static void null_is_the_null_device([[maybe_unused]] void **state) {
        nd_autoclose int fd = -EBADF;
        struct stat st, host;
        char byte;

        expect_ok(nd_file_open_null(O_RDWR, &fd));
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(stat("/dev/null", &host), 0);
        assert_true(S_ISCHR(st.st_mode));
        assert_int_equal(st.st_rdev, host.st_rdev);
        assert_int_equal(write(fd, "x", 1), 1);
        assert_int_equal(read(fd, &byte, 1), 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void owner_and_mode_of_null_cannot_be_changed([[maybe_unused]] void **state) {
        nd_autoclose int fd = -EBADF;

        if (geteuid() != 0)
                skip_because("root could change them otherwise");
        expect_ok(nd_file_open_null(O_RDONLY, &fd));
        assert_int_equal(fchown(fd, 0, 0), -1);
        assert_int_equal(errno, EROFS);
        assert_int_equal(fchmod(fd, 0666), -1);
        assert_int_equal(errno, EROFS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_directory_behind_a_symbolic_link_is_not_opened),
                cmocka_unit_test(making_an_existing_directory_succeeds_unless_it_is_a_file),
                cmocka_unit_test(a_list_has_the_directories_only_and_in_order),
                cmocka_unit_test(a_list_longer_than_its_ceiling_is_an_error_and_an_empty_one_is_not),
                cmocka_unit_test(a_regular_file_is_read_whole),
                cmocka_unit_test(a_null_byte_is_an_error_where_text_is_expected),
                cmocka_unit_test(more_than_the_ceiling_is_not_read),
                cmocka_unit_test(links_fifos_devices_and_directories_are_not_read_and_never_block),
                cmocka_unit_test(what_a_user_names_is_read_through_links_and_from_pipes),
                cmocka_unit_test(what_a_user_names_has_a_ceiling_and_what_is_found_is_a_file),
                cmocka_unit_test(kernel_files_are_read_though_they_have_no_size),
                cmocka_unit_test(replacing_leaves_the_new_contents_the_mode_and_nothing_else),
                cmocka_unit_test(a_file_is_given_to_a_group_but_not_through_a_link),
                cmocka_unit_test(replacing_a_symbolic_link_does_not_touch_its_target),
                cmocka_unit_test(a_short_write_goes_on_where_it_stopped),
                cmocka_unit_test(an_interrupted_write_is_tried_again),
                cmocka_unit_test(a_name_collision_is_retried_a_limited_number_of_times),
                cmocka_unit_test(removing_a_missing_file_succeeds),
                cmocka_unit_test(null_is_the_null_device),
                cmocka_unit_test(owner_and_mode_of_null_cannot_be_changed),
                cmocka_unit_test(renames_elsewhere_do_not_fail_an_open_in_a_root),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
