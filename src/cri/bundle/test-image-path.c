/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/image-path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#include "sys/file.h"

struct world {
        char *root;
        int tree;
};

static void world_make(struct world *ret) {
        nd_autofree char *image = nullptr;

        *ret = (struct world) {.root = scratch_make(), .tree = -EBADF};
        scratch_mkdir(ret->root, "image/run");
        scratch_mkdir(ret->root, "image/var");
        scratch_mkdir(ret->root, "outside");
        scratch_text(ret->root, "image/file", "");
        image = nd_format("%s/image", ret->root);
        ret->tree = open(image, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(ret->tree >= 0);
}

static void world_done(struct world *world) {
        nd_close_fd(&world->tree);
        scratch_remove(&world->root);
}

static void link_to(const struct world *world, const char *text, const char *name) {
        (void) unlinkat(world->tree, name, 0);
        assert_int_equal(symlinkat(text, world->tree, name), 0);
}

static struct nd_error *check(const struct world *world, const char *destination) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};

        if (destination)
                (void) nd_spec_add_mount(&spec, destination, nullptr, "/source");
        return cri_image_path_check(world->tree, &spec);
}

static void expect_path(const struct world *world, const char *path, const char *resolved, bool missing, bool dangling) {
        nd_cleanup(cri_image_path_done) struct cri_image_path found = {};

        expect_ok(cri_image_path_resolve(world->tree, path, &found));
        assert_string_equal(found.resolved, resolved);
        assert_int_equal(found.missing, missing);
        assert_int_equal(found.dangling, dangling);
}

static void paths_resolve_as_inside_the_container([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world;

        world_make(&world);
        link_to(&world, "../../../run", "var/run");
        link_to(&world, "../outside", "out");
        link_to(&world, "gone", "dangling");
        expect_path(&world, "/", "/", false, false);
        expect_path(&world, "/var/run", "/run", false, false);
        expect_path(&world, "var//run/./new/x/..", "/run/new", true, false);
        /* resolved inside the image, where it is missing */
        expect_path(&world, "/out/x", "/outside/x", true, true);
        expect_path(&world, "/dangling/x", "/gone/x", true, true);
        expect_path(&world, "/../../run", "/run", false, false);
}

static void link_loops_and_long_paths_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world;
        nd_cleanup(cri_image_path_done) struct cri_image_path found = {};
        char longest[4096];

        world_make(&world);
        link_to(&world, "b", "a");
        link_to(&world, "a", "b");
        expect_error(cri_image_path_resolve(world.tree, "/a", &found), ND_INVALID, "Too many levels");
        for (size_t i = 0; i < sizeof longest; i++)
                longest[i] = i % 2 ? '.' : '/';
        longest[sizeof longest - 1] = '\0';
        expect_error(cri_image_path_resolve(world.tree, longest, &found), ND_INVALID, "Too many levels");
        memset(longest, 'x', sizeof longest - 1);
        expect_error(cri_image_path_resolve(world.tree, longest, &found), ND_INVALID, "File name too long");
        expect_error(cri_image_path_resolve(world.tree, "/file/x", &found), ND_INVALID,
                     "'/file/x' in the image: Not a directory");
}

/* CVE-2026-47766 */
static void proc_sys_and_dev_are_directories_or_missing([[maybe_unused]] void **state) {
        static const char *const places[] = {"dev", "proc", "sys"};
        nd_cleanup(world_done) struct world world;

        world_make(&world);
        expect_ok(check(&world, nullptr));
        for (size_t i = 0; i < nd_count_of(places); i++) {
                link_to(&world, "/tmp", places[i]);
                expect_error(check(&world, nullptr), ND_INVALID, "of the image is a symbolic link");
                link_to(&world, "run", places[i]);
                expect_error(check(&world, nullptr), ND_INVALID, "of the image is a symbolic link");
                link_to(&world, "gone", places[i]);
                expect_error(check(&world, nullptr), ND_INVALID, "of the image is a symbolic link");
                assert_int_equal(unlinkat(world.tree, places[i], 0), 0);
                assert_int_equal(mknodat(world.tree, places[i], S_IFREG | 0600, 0), 0);
                expect_error(check(&world, nullptr), ND_INVALID, "of the image is not a directory");
                assert_int_equal(unlinkat(world.tree, places[i], 0), 0);
                assert_int_equal(mkdirat(world.tree, places[i], 0755), 0);
                expect_ok(check(&world, nullptr));
        }
}

static void a_mount_may_follow_links_but_not_to_proc_sys_or_dev([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world;

        world_make(&world);
        link_to(&world, "/run", "var/run");
        link_to(&world, "dev", "data");
        link_to(&world, "/proc/self/../../run", "through");
        link_to(&world, "data", "twice");
        expect_ok(check(&world, "/var/run/secrets/kubernetes.io/serviceaccount"));
        expect_ok(check(&world, "/dev/termination-log"));
        expect_ok(check(&world, "/proc"));
        expect_error(check(&world, "/data"), ND_INVALID, "the mount at '/data': a link of the image leads to '/dev'");
        expect_error(check(&world, "/data/"), ND_INVALID, "belongs to the kernel");
        expect_error(check(&world, "/twice/shm"), ND_INVALID, "leads to '/dev', which belongs to the kernel");
        expect_error(check(&world, "/through"), ND_INVALID, "leads to '/proc', which belongs to the kernel");
        link_to(&world, "/proc/sys/kernel/hostname", "run/hostname");
        expect_error(check(&world, "/run/hostname"), ND_INVALID, "leads to '/proc', which belongs to the kernel");
}

static struct nd_error *check_in(const struct world *world, const char *access, const char *inner, const char *directory) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_autofree char *source = nd_format("%s/outside", world->root);

        nd_spec_mount_option(nd_spec_add_mount(&spec, "/volume", nullptr, source), access);
        if (inner)
                (void) nd_spec_add_mount(&spec, inner, nullptr, "/source");
        spec.process.directory = nd_strdup(directory);
        return cri_image_path_check(world->tree, &spec);
}

static void nothing_is_created_in_a_read_only_volume([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world;

        world_make(&world);
        scratch_mkdir(world.root, "outside/there");
        link_to(&world, "/volume", "job");
        expect_ok(check_in(&world, "rw", "/volume/new", "/job/new"));
        expect_ok(check_in(&world, "ro", "/volume/there", "/job/there"));
        expect_ok(check_in(&world, "ro", nullptr, "/job"));
        expect_ok(check_in(&world, "ro", nullptr, "/volumes/new"));
        /* in the inner mount */
        expect_ok(check_in(&world, "ro", "/volume/there", "/job/there/new"));
        expect_error(
                check_in(&world, "ro", nullptr, "/volume/new"), ND_INVALID,
                "the working directory '/volume/new': '/volume/new' does not exist, and cannot be made in the read-only volume");
        expect_error(check_in(&world, "rro", nullptr, "/job/there/new"), ND_INVALID, "cannot be made in the read-only volume");
        expect_error(check_in(&world, "ro", "/job/new", "/"), ND_INVALID,
                     "the mount at '/job/new': '/volume/new' does not exist, and cannot be made");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(paths_resolve_as_inside_the_container),
                cmocka_unit_test(link_loops_and_long_paths_are_refused),
                cmocka_unit_test(proc_sys_and_dev_are_directories_or_missing),
                cmocka_unit_test(a_mount_may_follow_links_but_not_to_proc_sys_or_dev),
                cmocka_unit_test(nothing_is_created_in_a_read_only_volume),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
