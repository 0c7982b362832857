/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unit/expect.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include "sys/mount.h"
#include "sys/worker.h"

static void a_tree_is_removed_with_its_contents([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autofree char *tree = nd_format("%s/tree", root), *link = nd_format("%s/tree/a/link", root);
        size_t descriptors = resources_descriptors();

        scratch_mkdir(root, "tree/a/b");
        scratch_text(root, "tree/a/b/file", "x");
        scratch_text(root, "kept", "x");
        assert_int_equal(symlink("../../kept", link), 0);
        expect_ok(nd_tree_remove(AT_FDCWD, tree));
        assert_false(scratch_has(root, "tree"));
        assert_true(scratch_has(root, "kept"));
        assert_int_equal(resources_descriptors(), descriptors);
}

static void removing_a_missing_path_or_a_file_succeeds([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autofree char *absent = nd_format("%s/no/such", root), *file = nd_format("%s/file", root);

        scratch_text(root, "file", "x");
        expect_ok(nd_tree_remove(AT_FDCWD, absent));
        expect_ok(nd_tree_remove(AT_FDCWD, file));
        assert_false(scratch_has(root, "file"));
}

/* As a container can make it: deeper than the longest path, with names that collide with ours. */
static void a_tree_deeper_than_paths_and_descriptors_is_removed([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autoclose int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        nd_autofree char *tree = nd_format("%s/tree", root);

        scratch_mkdir(root, "tree/.removed-0/x");
        scratch_text(root, "tree/.removed-1", "in the way");
        for (int i = 0; i < 3000; i++) {
                int next;

                assert_true(mkdirat(fd, "tree", 0700) == 0 || i == 0);
                next = openat(fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                assert_true(next >= 0);
                (void) close(fd);
                fd = next;
        }
        expect_ok(nd_tree_remove(AT_FDCWD, tree));
        assert_false(scratch_has(root, "tree"));
}

static struct nd_error *mounted_work(void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autofree char *tree = nd_format("%s/tree", (const char *) argument), *below = nd_format("%s/below", tree);
        nd_autofree char *kept = nd_format("%s/kept", (const char *) argument);

        nd_try(nd_mount_namespace_private());
        if (nd_sys->mount(kept, below, nullptr, MS_BIND, nullptr) < 0)
                return nd_error_new(ND_ABORTED, errno, "bind");
        return nd_tree_remove(AT_FDCWD, tree);
}

/* containerd lost whole images that way (#10704). */
static void nothing_behind_a_mount_is_touched([[maybe_unused]] void **state) {
        scratch_directory root = nullptr;

        if (geteuid() != 0)
                skip_because("mounts need privilege");
        root = scratch_make();
        scratch_mkdir(root, "tree/below");
        scratch_mkdir(root, "kept");
        scratch_text(root, "kept/precious", "x");
        expect_error(nd_worker_run("with a mount", mounted_work, root, 5000000, nullptr), ND_INTERNAL, "below");
        assert_true(scratch_has(root, "kept/precious"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tree_is_removed_with_its_contents),
                cmocka_unit_test(removing_a_missing_path_or_a_file_succeeds),
                cmocka_unit_test(a_tree_deeper_than_paths_and_descriptors_is_removed),
                cmocka_unit_test(nothing_behind_a_mount_is_touched),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
