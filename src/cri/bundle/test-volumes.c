/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/volumes.h"
#include "cri/core/pod-table.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unit/expect.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include "cri/core/config.h"
#include "sys/mount.h"
#include "sys/worker.h"

static char *name_of(const char *path) {
        nd_autotext struct nd_text text = ND_TEXT(1000);

        cri_volumes_name(path, &text);
        return nd_strdup(nd_text_get(&text));
}

static void an_error_uses_the_volumes_name_in_the_pod([[maybe_unused]] void **state) {
        expect_text(name_of("/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/cache"), "'cache'");
        expect_text(name_of("/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-1/mount"), "'pvc-1'");
        expect_text(name_of("/var/lib/kubelet/pods/u/volume-subpaths/data/web/0"), "'data'");
        expect_text(name_of("/srv/x"), "'/srv/x'");
        expect_text(name_of("/a/volumes/kubernetes.io~"), "'/a/volumes/kubernetes.io~'");
}

static struct cri_mount_request mount_of(const char *host, const char *container) {
        return (struct cri_mount_request) {
                .host_path = (char *) host, .container_path = (char *) container, .image = (char *) ""};
}

static const struct cri_config config = {
        .state = (char *) "/var/lib/nodens", .run = (char *) "/run/nodens", .netns = (char *) "/run/netns"};

static const struct cri_sandbox sandbox = {.id = "s", .request = {.uid = (char *) "u"}};

static struct nd_error *look(struct cri_mount_request mount, int userns) {
        nd_cleanup(cri_volumes_done) struct cri_volumes found = {};
        struct cri_container_request request = {};
        struct nd_error *error;

        nd_vector_push(&request.mounts, mount);
        error = cri_volumes_look(&config, &sandbox, &request, userns, &found);
        nd_vector_done(&request.mounts);
        return error;
}

static void needs_privilege(void) {
        if (geteuid() != 0)
                skip_because("mounts need privilege");
}

static void an_invalid_mount_is_refused_with_a_reason([[maybe_unused]] void **state) {
        struct cri_mount_request mount = mount_of("/tmp", "/data");

        expect_error(look(mount_of("/no/such", "/data"), -EBADF), ND_NOT_FOUND,
                     "volume '/no/such' at '/data': host path '/no/such' does not exist on this node; create it");
        expect_error(look(mount_of("relative", "/data"), -EBADF), ND_INVALID, "is not absolute");
        mount.recursive_read_only = true;
        expect_error(look(mount, -EBADF), ND_INVALID, "recursive read-only needs read-only");
        mount.read_only = true;
        mount.propagation = MOUNT_HOST_TO_CONTAINER;
        expect_error(look(mount, -EBADF), ND_INVALID, "needs private mount propagation");
        mount.propagation = MOUNT_PRIVATE;
        needs_privilege();
        expect_ok(look(mount, -EBADF));
}

static int make_userns(void) {
        struct nd_userns_map map = {.outside = 1 << 20, .count = 65536};
        int fd = -EBADF;

        expect_ok(nd_userns_make(&(struct nd_userns_plan) {.uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1}, &fd));
        return fd;
}

static void a_filesystem_that_cannot_be_idmapped_is_named_with_a_solution([[maybe_unused]] void **state) {
        nd_autoclose int userns = -EBADF;
        struct cri_mount_request mount = mount_of("/proc", "/data");

        needs_privilege();
        userns = make_userns();
        mount.idmapped = true;
        mount.uids = mount.gids = (struct nd_userns_map) {.outside = 1 << 20, .count = 65536};
        expect_error(look(mount, userns), ND_PRECONDITION,
                     "failed to set MOUNT_ATTR_IDMAP on /proc: invalid argument (maybe the source filesystem doesn't support "
                     "idmap mounts on this kernel?): it is on proc; put the volume on");
        mount.idmapped = false;
        expect_ok(look(mount, userns));
        mount.propagation = MOUNT_BIDIRECTIONAL;
        expect_error(look(mount, userns), ND_INVALID, "cannot reach the host from the pod's user namespace");
}

static struct nd_error *bidirectional_work([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        struct cri_mount_request mount = mount_of("/mnt", "/data");

        mount.propagation = MOUNT_BIDIRECTIONAL;
        nd_try(nd_mount_namespace_private());
        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &(struct mount_attr) {.propagation = MS_PRIVATE},
                          MOUNT_ATTR_SIZE_VER0) < 0)
                return nd_error_new(ND_ABORTED, errno, "make private");
        expect_error(look(mount, -EBADF), ND_INVALID, "needs a shared mount, and '/mnt' is not on one");
        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &(struct mount_attr) {.propagation = MS_SHARED}, MOUNT_ATTR_SIZE_VER0) <
            0)
                return nd_error_new(ND_ABORTED, errno, "make shared");
        return look(mount, -EBADF);
}

static void bidirectional_mounts_need_a_shared_one([[maybe_unused]] void **state) {
        needs_privilege();
        expect_ok(nd_worker_run("in a mount namespace", bidirectional_work, nullptr, 5000000, nullptr));
}

static struct nd_error *submounts_work(void *argument, [[maybe_unused]] int *ret_fd) {
        const char *root = argument;
        nd_autofree char *below = nd_format("%s/below", root);
        nd_cleanup(cri_volumes_done) struct cri_volumes mapped = {}, mixed = {}, ours = {};
        struct cri_mount_request mount = mount_of(root, "/data");
        struct cri_container_request request = {};
        nd_autoclose int userns = make_userns();

        mount.idmapped = true;
        mount.uids = mount.gids = (struct nd_userns_map) {.outside = 1 << 20, .count = 65536};
        nd_vector_push(&request.mounts, mount);
        nd_try(nd_mount_namespace_private());
        if (nd_sys->mount("tmpfs", below, "tmpfs", 0, nullptr) < 0)
                return nd_error_new(ND_ABORTED, errno, "tmpfs");
        nd_try(cri_volumes_look(&config, &sandbox, &request, userns, &mapped));
        assert_true(mapped.items[0].submounts);
        nd_try(cri_volumes_look(&(struct cri_config) {.state = below, .run = below, .netns = below}, &sandbox, &request,
                                userns, &ours));
        assert_false(ours.items[0].submounts);
        if (nd_sys->mount("proc", below, "proc", 0, nullptr) < 0)
                return nd_error_new(ND_ABORTED, errno, "proc");
        nd_try(cri_volumes_look(&config, &sandbox, &request, userns, &mixed));
        assert_false(mixed.items[0].submounts);
        nd_vector_done(&request.mounts);
        return nullptr;
}

static void submounts_are_mapped_if_all_can_be_and_none_is_ours([[maybe_unused]] void **state) {
        scratch_directory root = nullptr;

        needs_privilege();
        root = scratch_make();
        scratch_mkdir(root, "below");
        expect_ok(nd_worker_run("in a mount namespace", submounts_work, root, 5000000, nullptr));
}

static void mounts_come_parents_first_with_their_options([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_cleanup(cri_volumes_done) struct cri_volumes found = {};
        struct cri_container_request request = {};
        struct cri_declared_volume own = {.destination = (char *) "/a/b/d", .source = (char *) "/4"};
        struct cri_declared_volumes declared = {.items = &own, .count = 1};
        static const char *const order[] = {"/b", "/a/b", "/a/b/d", "/a/b/c"};

        nd_vector_push(&request.mounts, mount_of("/1", "/a/b/c"));
        nd_vector_push(&request.mounts, mount_of("/2", "/a//b/"));
        nd_vector_push(&request.mounts, mount_of("/3", "/b"));
        request.mounts.items[2].propagation = MOUNT_HOST_TO_CONTAINER;
        request.mounts.items[1].read_only = request.mounts.items[1].recursive_read_only = true;
        request.mounts.items[1].attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
        /* mapped by us, so the OCI runtime does not map it */
        request.mounts.items[0].idmapped = true;
        for (size_t i = 0; i < 3; i++) {
                nd_vector_push(&found, VOLUME_NONE);
                found.items[i].source = nd_strdup(request.mounts.items[i].host_path);
        }
        volumes_mount(&request, &found, &declared, &spec);
        assert_int_equal(spec.mounts.count, 4);
        for (size_t i = 0; i < 4; i++)
                assert_string_equal(spec.mounts.items[i].destination, order[i]);
        assert_true(nd_strings_have(&spec.mounts.items[0].options, "rslave"));
        assert_true(nd_strings_have(&spec.mounts.items[0].options, "rw"));
        assert_true(nd_strings_have(&spec.mounts.items[1].options, "rro"));
        assert_true(nd_strings_have(&spec.mounts.items[1].options, "nodev"));
        assert_true(nd_strings_have(&spec.mounts.items[1].options, "rnosuid"));
        assert_false(nd_strings_have(&spec.mounts.items[1].options, "noexec"));
        assert_false(spec.mounts.items[3].idmapped);
        nd_vector_done(&request.mounts);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_error_uses_the_volumes_name_in_the_pod),
                cmocka_unit_test(an_invalid_mount_is_refused_with_a_reason),
                cmocka_unit_test(a_filesystem_that_cannot_be_idmapped_is_named_with_a_solution),
                cmocka_unit_test(bidirectional_mounts_need_a_shared_one),
                cmocka_unit_test(submounts_are_mapped_if_all_can_be_and_none_is_ours),
                cmocka_unit_test(mounts_come_parents_first_with_their_options),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
