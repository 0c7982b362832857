/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>
#include <sys/statfs.h>

#include <unit/faults.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/mount.h"
#include "sys/userns.h"
#include "sys/worker.h"

enum { HOST = 1 << 20, COUNT = 65536 };

/* Mounting runs in a worker, in its own mount namespace; observations come back as the text of an
 * error. */
static struct nd_error *run(nd_worker_function function, void *argument) {
        return nd_worker_run("mount", function, argument, 60 * ND_SECOND_US, nullptr);
}

/* Call this first: skipping jumps past the cleanup. */
static void needs_privilege(void) {
        if (geteuid() != 0)
                skip_because("mounting needs privilege");
}

static struct nd_error *make_userns(int *ret_fd) {
        static const struct nd_userns_map block = {.inside = 0, .outside = HOST, .count = COUNT};

        return nd_userns_make(&(struct nd_userns_plan) {.uids = &block, .uid_count = 1, .gids = &block, .gid_count = 1},
                              ret_fd);
}

static struct nd_error *saw_owner(const char *path) {
        struct stat st;

        if (stat(path, &st) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat '%s'", path);
        return nd_error_new(ND_ABORTED, 0, "owner %u", st.st_uid);
}

static struct nd_error *idmap_tree(void *directory, [[maybe_unused]] int *ret_fd) {
        nd_autofree char *from = nd_format("%s/from", (char *) directory), *to = nd_format("%s/to", (char *) directory);
        nd_autoclose int tree = -EBADF, userns = -EBADF;

        nd_try(nd_mount_namespace_private());
        nd_try(make_userns(&userns));
        nd_try(nd_mount_clone(AT_FDCWD, from, false, &tree));
        nd_try(nd_mount_idmap(tree, userns, false));
        nd_try(nd_mount_attach(tree, AT_FDCWD, to));
        return saw_owner(to);
}

static void through_an_idmapped_mount_root_s_files_belong_to_the_mapped_root([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();

        scratch_mkdir(root, "from");
        scratch_mkdir(root, "to");
        expect_error(run(idmap_tree, root), ND_ABORTED, "owner 1048576");
}

static struct nd_error *idmap_by_descriptor(void *directory, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int tree = -EBADF, here = -EBADF;

        nd_try(nd_mount_namespace_private());
        here = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        nd_try(nd_mount_clone(here, "", true, &tree));
        return nd_error_new(ND_ABORTED, 0, "cloned");
}

static void a_tree_is_cloned_by_its_descriptor_too([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();

        expect_error(run(idmap_by_descriptor, root), ND_ABORTED, "cloned");
}

static struct nd_error *idmap_what_cannot([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int tree = -EBADF, userns = -EBADF;

        nd_try(nd_mount_namespace_private());
        nd_try(make_userns(&userns));
        nd_try(nd_mount_clone(AT_FDCWD, "/proc", false, &tree));
        return nd_mount_idmap(tree, userns, false);
}

static void a_filesystem_that_cannot_be_idmapped_is_named([[maybe_unused]] void **state) {
        needs_privilege();

        expect_error(run(idmap_what_cannot, nullptr), ND_UNIMPLEMENTED,
                     "idmap a mount of proc, which does not support it here");
}

/* As in a rootless node: the filesystem was mounted by the host. */
static struct nd_error *idmap_in_node(void *directory, [[maybe_unused]] int *ret_fd) {
        static const struct nd_userns_map map = {.outside = 1, .count = 1000};
        nd_autoclose int node = -EBADF, tree = -EBADF, userns = -EBADF;

        nd_try(make_userns(&node));
        nd_try(nd_userns_join(node));
        nd_try(nd_mount_namespace_private());
        nd_try(nd_userns_make(&(struct nd_userns_plan) {.uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1}, &userns));
        nd_try(nd_mount_clone(AT_FDCWD, directory, false, &tree));
        return nd_mount_idmap(tree, userns, false);
}

static void a_node_cannot_idmap_what_the_host_mounted([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();

        assert_int_equal(chmod(root, 0755), 0);
        expect_error(run(idmap_in_node, root), ND_DENIED,
                     "which the host mounted: a rootless node can idmap only filesystems");
}

static struct nd_error *make_tmpfs(void *directory, [[maybe_unused]] int *ret_fd) {
        static const struct nd_mount_fs_option options[] = {{"size", "65536"}, {"mode", "0700"}};
        nd_autoclose int tree = -EBADF;
        struct statfs fs;

        nd_try(nd_mount_namespace_private());
        nd_try(nd_mount_fs_make("tmpfs", options, nd_count_of(options), 0, &tree));
        nd_try(nd_mount_attach(tree, AT_FDCWD, directory));
        if (statfs(directory, &fs) < 0)
                return nd_error_new(ND_INTERNAL, errno, "statfs");
        return nd_error_new(ND_ABORTED, 0, "%s of %llu bytes", nd_mount_fs_name(tree),
                            (unsigned long long) fs.f_blocks * (unsigned long long) fs.f_bsize);
}

static void a_filesystem_is_made_with_its_options([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();

        expect_error(run(make_tmpfs, root), ND_ABORTED, "tmpfs of 65536 bytes");
        assert_int_equal(scratch_entries(root, "."), 0); /* and nothing of it is visible outside */
}

static struct nd_error *make_wrong(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct nd_mount_fs_option *option = argument;
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_namespace_private());
        return nd_mount_fs_make(option->value ? "tmpfs" : option->key, option, option->value ? 1 : 0, 0, &tree);
}

static void the_kernels_message_about_a_wrong_option_is_in_the_error([[maybe_unused]] void **state) {
        needs_privilege();

        struct nd_mount_fs_option unknown = {"colour", "red"}, wrong = {"size", "many"}, type = {.key = "nonsensefs"};

        expect_error(run(make_wrong, &unknown), ND_INTERNAL, "tmpfs: colour (");
        expect_error(run(make_wrong, &wrong), ND_INTERNAL, "tmpfs: size (");
        expect_error(run(make_wrong, &type), ND_INTERNAL, "open filesystem type nonsensefs: No such device");
}

static struct nd_error *make_flagged([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        static const struct nd_mount_fs_option flag = {.key = "ro"};
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_namespace_private());
        nd_try(nd_mount_fs_make("tmpfs", &flag, 1, MOUNT_ATTR_NOSUID, &tree));
        return nd_error_new(ND_ABORTED, 0, "made");
}

static void an_option_without_a_value_is_a_flag([[maybe_unused]] void **state) {
        needs_privilege();

        expect_error(run(make_flagged, nullptr), ND_ABORTED, "made");
}

static struct nd_error *attach_to_link(void *directory, [[maybe_unused]] int *ret_fd) {
        nd_autofree char *link = nd_format("%s/link", (char *) directory);
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_namespace_private());
        nd_try(nd_mount_fs_make("tmpfs", nullptr, 0, 0, &tree));
        nd_try(nd_mount_attach(tree, AT_FDCWD, link));
        return nd_error_new(ND_ABORTED, 0, "attached");
}

static void a_tree_is_not_attached_through_a_symbolic_link([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();
        nd_autofree char *link = nd_format("%s/link", root);

        scratch_mkdir(root, "target");
        assert_int_equal(symlink("target", link), 0);
        expect_error(run(attach_to_link, root), ND_INTERNAL, "attach a mount at '");
}

static void cloning_a_missing_path_fails([[maybe_unused]] void **state) {
        int fd = -EBADF;

        if (geteuid() != 0)
                skip_because("cloning a mount needs privilege");
        expect_error(nd_mount_clone(AT_FDCWD, "/nonexistent", false, &fd), ND_NOT_FOUND, "clone the mount at '/nonexistent'");
        assert_int_equal(fd, -EBADF);
}

static void an_open_file_whose_mount_cannot_be_cloned_is_named([[maybe_unused]] void **state) {
        int fd = -EBADF, fds[2];

        assert_return_code(pipe2(fds, O_CLOEXEC), errno);
        expect_error(nd_mount_clone(fds[0], "", false, &fd), geteuid() == 0 ? nd_error_code_of(EINVAL) : ND_DENIED,
                     "clone the mount at 'pipe:[");
        assert_int_equal(fd, -EBADF);
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static void a_filesystem_has_its_name_or_its_number([[maybe_unused]] void **state) {
        nd_autoclose int proc = open("/proc", O_PATH | O_CLOEXEC), pipe_fd = -EBADF;
        nd_autofree char *type = nullptr;
        int fds[2];

        assert_string_equal(nd_mount_fs_name(proc), "proc");
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pipe_fd = fds[0];
        (void) close(fds[1]);
        assert_string_equal(nd_mount_fs_name(pipe_fd), "filesystem type 0x50495045");
        assert_string_equal(nd_mount_fs_name(-EBADF), "an unknown filesystem");
        expect_ok(nd_mount_fs_type(proc, &type));
        assert_string_equal(type, "proc");
        free(nd_take_ptr(type));
        expect_ok(nd_mount_fs_type(pipe_fd, &type)); /* on no mount of ours */
        assert_string_equal(type, "unknown");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(through_an_idmapped_mount_root_s_files_belong_to_the_mapped_root),
                cmocka_unit_test(a_tree_is_cloned_by_its_descriptor_too),
                cmocka_unit_test(a_filesystem_that_cannot_be_idmapped_is_named),
                cmocka_unit_test(a_node_cannot_idmap_what_the_host_mounted),
                cmocka_unit_test(a_filesystem_is_made_with_its_options),
                cmocka_unit_test(the_kernels_message_about_a_wrong_option_is_in_the_error),
                cmocka_unit_test(an_option_without_a_value_is_a_flag),
                cmocka_unit_test(a_tree_is_not_attached_through_a_symbolic_link),
                cmocka_unit_test(cloning_a_missing_path_fails),
                cmocka_unit_test(an_open_file_whose_mount_cannot_be_cloned_is_named),
                cmocka_unit_test(a_filesystem_has_its_name_or_its_number),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
