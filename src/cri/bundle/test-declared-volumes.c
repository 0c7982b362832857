/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/declared-volumes.h"

#include <sys/stat.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#include "cri/bundle/volumes.h"
#include "sys/mount.h"

/* An image's tree, detached, as a root filesystem is when its volumes are made. */
struct world {
        char *root;
        struct nd_oci_config image;
        struct cri_container_request request;
        struct cri_declared_volumes found;
        int tree;
};

static void world_make(struct world *ret) {
        nd_autofree char *image = nullptr;

        if (geteuid() != 0)
                skip_because("mounts need privilege");
        *ret = (struct world) {.root = scratch_make(), .tree = -EBADF};
        scratch_mkdir(ret->root, "image/data");
        scratch_mkdir(ret->root, "image/etc");
        scratch_mkdir(ret->root, "container");
        scratch_text(ret->root, "image/data/file", "from the image");
        scratch_text(ret->root, "image/etc/passwd", "root");
        image = nd_format("%s/image", ret->root);
        expect_ok(nd_mount_clone(AT_FDCWD, image, false, &ret->tree));
}

static void world_done(struct world *world) {
        nd_strings_done(&world->image.volumes);
        cri_declared_volumes_done(&world->found);
        nd_close_fd(&world->tree);
        scratch_remove(&world->root);
}

static struct nd_error *make(struct world *world, const char *path) {
        nd_autofree char *directory = nd_format("%s/container", world->root);

        nd_strings_done(&world->image.volumes);
        nd_strings_add(&world->image.volumes, path);
        cri_declared_volumes_done(&world->found);
        expect_ok(cri_declared_volumes_undo(directory));
        return cri_declared_volumes_make(&(struct cri_declared_volumes_plan) {.image = &world->image,
                                                                              .request = &world->request,
                                                                              .directory = directory,
                                                                              .tree = world->tree,
                                                                              .uid = 1 << 20,
                                                                              .gid = 2 << 20},
                                         &world->found);
}

static void a_volume_starts_with_the_images_contents([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world = {.tree = -EBADF};
        nd_autofree char *directory = nullptr;

        world_make(&world);
        expect_ok(make(&world, "/data/"));
        assert_int_equal(world.found.count, 1);
        assert_string_equal(world.found.items[0].destination, "/data");
        expect_text(scratch_read(world.root, "container/volumes/0/file"), "from the image");
        directory = nd_format("%s/container", world.root);
        expect_ok(cri_declared_volumes_undo(directory));
        assert_false(scratch_has(world.root, "container/volumes"));
}

static void without_contents_in_the_image_it_is_empty_and_owned_by_the_pods_root([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world = {.tree = -EBADF};
        struct stat st;

        world_make(&world);
        expect_ok(make(&world, "var//lib/x"));
        assert_string_equal(world.found.items[0].destination, "/var/lib/x");
        assert_int_equal(stat(world.found.items[0].source, &st), 0);
        assert_int_equal(st.st_uid, 1 << 20);
        assert_int_equal(st.st_gid, 2 << 20);
        assert_int_equal(st.st_mode & 07777, 0755);
}

static void the_pods_own_mount_takes_precedence([[maybe_unused]] void **state) {
        struct cri_mount_request mount = {.container_path = (char *) "/data//"};
        nd_cleanup(world_done) struct world world = {.tree = -EBADF};

        world_make(&world);
        nd_vector_push(&world.request.mounts, mount);
        expect_ok(make(&world, "/data"));
        assert_int_equal(world.found.count, 0);
        nd_vector_done(&world.request.mounts);
}

static void links_are_resolved_inside_the_image([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world = {.tree = -EBADF};

        world_make(&world);
        assert_int_equal(symlinkat("../../../data", world.tree, "to-data"), 0);
        assert_int_equal(symlinkat("/proc", world.tree, "to-proc"), 0);
        scratch_mkdir(world.root, "image/proc");
        expect_ok(make(&world, "/to-data"));
        assert_string_equal(world.found.items[0].destination, "/data");
        expect_text(scratch_read(world.root, "container/volumes/0/file"), "from the image");
        expect_error(make(&world, "/to-proc"), ND_INVALID,
                     "volume '/to-proc' declared by the image: '/proc' belongs to the kernel");
        expect_error(make(&world, "/sys/fs/x"), ND_INVALID, "'/sys/fs/x' belongs to the kernel");
        expect_error(make(&world, "/etc/../"), ND_INVALID, "cannot replace the root");
        expect_error(make(&world, "/etc/passwd"), ND_INVALID, "cannot be opened as a directory");
}

/* CVE-2019-16884 by a link and a name that does not exist in the image: the OCI runtime resolves
 * it with /proc mounted. */
static void no_link_leads_a_volume_to_proc_sys_or_dev([[maybe_unused]] void **state) {
        static const struct {
                const char *link, *text;
        } links[] = {
                {"a", "/proc"},
                {"b", "/dev"},
                {"c", "/sys"},
                {"d", "../../proc/self"},
                {"e", "data/../proc"},
                {"f", "nothing/../dev"},
                {"g", "a/1/../../data"},
                {"h", "/proc/self/root/data"},
                {"i", "b"},
                {"loop", "loop"},
        };
        static const char *const refused[] = {
                "/a/sys",
                "/a/sys/kernel",
                "/a/1",
                "/a/self/attr",
                "/a/self/fd",
                "/a/self/task",
                "/a/thread-self/attr/apparmor",
                "/a/net",
                "/b/pts",
                "/b/shm",
                "/c/kernel",
                "/c/fs/cgroup",
                "/d",
                "/d/attr",
                "/e/sys",
                "/f/shm",
                "/g",
                "/h",
                "/i/pts",
                "/proc/sys",
                "/data/../proc/x",
        };
        nd_cleanup(world_done) struct world world = {.tree = -EBADF};

        world_make(&world);
        for (size_t i = 0; i < nd_count_of(links); i++)
                assert_int_equal(symlinkat(links[i].text, world.tree, links[i].link), 0);
        /* an image without /proc, /sys and /dev, and one with them */
        for (int has = 0; has < 2; has++) {
                for (size_t i = 0; i < nd_count_of(refused); i++)
                        expect_error(make(&world, refused[i]), ND_INVALID, "belongs to the kernel");
                scratch_mkdir(world.root, "image/proc");
                scratch_mkdir(world.root, "image/sys/fs");
                scratch_mkdir(world.root, "image/dev/pts");
        }
        expect_error(make(&world, "/loop/x"), ND_INVALID, "in the image: Too many levels of symbolic links");
}

static void a_dangling_link_is_refused([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world = {.tree = -EBADF};

        world_make(&world);
        assert_int_equal(symlinkat("/nowhere", world.tree, "dangling"), 0);
        assert_int_equal(symlinkat("data", world.tree, "to-data"), 0);
        expect_error(make(&world, "/dangling"), ND_INVALID, "a link leads to '/nowhere', which does not exist in the image");
        expect_error(make(&world, "/dangling/x"), ND_INVALID, "which does not exist in the image");
        expect_ok(make(&world, "/to-data/new/directory")); /* as with /var/run -> /run */
        assert_string_equal(world.found.items[0].destination, "/data/new/directory");
        expect_error(make(&world, "/data/file/x"), ND_INVALID, "Not a directory");
}

static void a_link_cannot_place_a_volume_over_the_pods_mounts([[maybe_unused]] void **state) {
        struct cri_mount_request mount = {.container_path = (char *) "/secrets"};
        nd_cleanup(world_done) struct world world = {.tree = -EBADF};

        world_make(&world);
        scratch_mkdir(world.root, "image/deep/down/here");
        assert_int_equal(symlinkat("deep/down/here", world.tree, "secrets"), 0);
        nd_vector_push(&world.request.mounts, mount);
        expect_ok(make(&world, "/deep/down/here"));
        assert_int_equal(world.found.count, 0);
        /* links in the pod's volume are unknown */
        expect_ok(make(&world, "/deep/down/here/below"));
        assert_int_equal(world.found.count, 0);
        expect_ok(make(&world, "/deep/down/hereabouts"));
        assert_int_equal(world.found.count, 1);
        nd_vector_done(&world.request.mounts);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_volume_starts_with_the_images_contents),
                cmocka_unit_test(without_contents_in_the_image_it_is_empty_and_owned_by_the_pods_root),
                cmocka_unit_test(the_pods_own_mount_takes_precedence),
                cmocka_unit_test(links_are_resolved_inside_the_image),
                cmocka_unit_test(no_link_leads_a_volume_to_proc_sys_or_dev),
                cmocka_unit_test(a_dangling_link_is_refused),
                cmocka_unit_test(a_link_cannot_place_a_volume_over_the_pods_mounts),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
