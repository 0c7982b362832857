/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sched.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "cri/bundle/runtime-mntns.h"
#include "cri/core/config.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/worker.h"

/* ---- exclusion ---- */

static void pods_mounts_are_excluded_and_no_others([[maybe_unused]] void **state) {
        static const struct cri_runtime_mntns_places places = {
                .run = (char *) "/run/nodens", .state = (char *) "/var/lib/nodens", .netns = (char *) "/run/netns"};
        static const struct {
                const char *point, *wanted; /* nullptr = stays */
        } cases[] = {
                {"/", nullptr},
                {"/run", nullptr},
                {"/run/netns", nullptr},
                {"/run/netns/nodens-1", "/run/netns/nodens-1"},
                {"/run/netns/a/b", nullptr},
                {"/run/netns2/a", nullptr},
                {"/run/nodens", nullptr},
                {"/run/nodens/pins", "/run/nodens/pins"},
                {"/run/nodens/pins/mnt", "/run/nodens/pins/mnt"},
                {"/run/nodens/pods/1/files", "/run/nodens/pods/1/files"},
                {"/run/nodens/pods/1/files/shm", nullptr},
                {"/var/lib/nodens/pods/1/containers/2/rootfs", "/var/lib/nodens/pods/1/containers/2/rootfs"},
                {"/var/lib/nodens/pods/1/containers/2/images/0", "/var/lib/nodens/pods/1/containers/2/images/0"},
                {"/var/lib/nodens/pods/1/containers/2/rootfs/data", nullptr},
                {"/var/lib/nodens/images", nullptr},
                {"/var/lib/kubelet", nullptr},
                {"/var/lib/kubelet/pods", nullptr},
                {"/k/pods/u/volumes/kubernetes.io~secret/s", "/k/pods/u/volumes/kubernetes.io~secret/s"},
                {"/k/pods/u/volumes/kubernetes.io~csi/v/mount", "/k/pods/u/volumes/kubernetes.io~csi/v/mount"},
                {"/k/pods/u/volume-subpaths/v/c/0", "/k/pods/u/volume-subpaths/v/c/0"},
                /* the pod's directories: a link there could lead anywhere */
                {"/k/pods/u/volumes/kubernetes.io~empty-dir/v/x", nullptr},
                {"/k/pods/u/volume-subpaths/v/c/0/x", nullptr},
                /* not a volume of a pod */
                {"/k/plugins/kubernetes.io/csi/d/globalmount", nullptr},
                {"/pods\\040a/pods/u/volumes/kubernetes.io~nfs/v", "/pods a/pods/u/volumes/kubernetes.io~nfs/v"},
                {"/run/netns/a\\134b\\", "/run/netns/a\\b\\"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *line = nd_format("36 35 98:0 /x %s rw shared:1 - tmpfs tmpfs rw\n", cases[i].point);
                nd_autofree char *found = cri_runtime_mntns_excluded(&places, line);

                if (cases[i].wanted)
                        assert_string_equal(found, cases[i].wanted);
                else
                        assert_null(found);
        }
        assert_null(cri_runtime_mntns_excluded(&places, ""));
        assert_null(cri_runtime_mntns_excluded(&places, "36 35 98:0\n1 2 3 4 /run/netns/x rw"));
        assert_null(cri_runtime_mntns_excluded(&(struct cri_runtime_mntns_places) {}, "1 2 3 4 /run/netns/x rw"));
}

/* ---- the namespaces ---- */

struct visit {
        struct cri_runtime_mntns *template;
        char *old_netns, *new_netns, *disk, *own;
};

static bool is_there(const char *path) {
        return access(path, F_OK) == 0;
}

static struct nd_error *mount_at(const char *path) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, path, 0755));
        nd_try(nd_mount_fs_make("tmpfs", nullptr, 0, 0, &tree));
        nd_try(nd_dir_make(tree, "mounted", 0755));
        return nd_mount_attach(tree, AT_FDCWD, path);
}

static bool is_mounted(const char *path) {
        nd_autofree char *inside = nd_format("%s/mounted", path);

        return is_there(inside);
}

static struct nd_error *look(void *argument, int *ret_fd) {
        const struct visit *visit = argument;

        nd_try(cri_runtime_mntns_enter(visit->template, ret_fd));
        if (is_mounted(visit->old_netns) || is_mounted(visit->new_netns))
                return nd_error_new(ND_INTERNAL, 0, "the mounts of pods are visible");
        if (!is_mounted(visit->disk))
                return nd_error_new(ND_INTERNAL, 0, "a later mount of the host is not visible");
        if (is_mounted(visit->own))
                return nd_error_new(ND_INTERNAL, 0, "the mount of another container is visible");
        return mount_at(visit->own);
}

/* In a mount namespace whose mounts are shared, as those of a host are. */
static struct nd_error *play_host(void *argument, [[maybe_unused]] int *ret_fd) {
        struct visit *visit = argument;
        const char *root = visit->own;
        struct cri_config config = {
                .run = nd_format("%s/run", root), .state = nd_format("%s/state", root), .netns = nd_format("%s/link", root)};
        nd_autofree char *netns = nd_format("%s/netns", root);
        nd_autoclose int fd = -EBADF;
        sd_event *loop;

        if (unshare(CLONE_NEWNS) < 0 || mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) < 0 ||
            mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) < 0 || symlink(netns, config.netns) < 0)
                return nd_error_new(ND_INTERNAL, errno, "make a host");
        *visit = (struct visit) {.old_netns = nd_format("%s/old", netns),
                                 .new_netns = nd_format("%s/new", netns),
                                 .disk = nd_format("%s/disk", root),
                                 .own = nd_format("%s/own", root)};
        nd_try(mount_at(visit->old_netns));
        if (sd_event_new(&loop) < 0)
                return nd_error_new(ND_INTERNAL, 0, "make a loop");
        nd_try(cri_runtime_mntns_open(loop, &config, &visit->template));
        nd_try(mount_at(visit->new_netns));
        nd_try(mount_at(visit->disk));
        for (int i = 0; i < 2; i++) {
                nd_close_fd(&fd);
                nd_try(nd_worker_run("look around", look, visit, 10 * ND_SECOND_US, &fd));
                if (!is_mounted(visit->old_netns) || !is_mounted(visit->new_netns))
                        return nd_error_new(ND_INTERNAL, 0, "the host has lost mounts of pods");
                if (is_mounted(visit->own))
                        return nd_error_new(ND_INTERNAL, 0, "a container's mount is visible on the host");
        }
        if (setns(fd, CLONE_NEWNS) < 0 || !is_mounted(visit->own))
                return nd_error_new(ND_INTERNAL, errno, "the descriptor is not of the container's mount namespace");
        cri_runtime_mntns_free(visit->template);
        sd_event_unref(loop);
        return nullptr;
}

static void a_copy_has_the_hosts_mounts_without_those_of_pods([[maybe_unused]] void **state) {
        struct visit visit = {};
        char *root;

        if (geteuid() != 0)
                skip_because("mounting needs privilege");
        root = scratch_make();
        scratch_mkdir(root, "run");
        scratch_mkdir(root, "state");
        scratch_mkdir(root, "netns");
        visit.own = root;
        expect_ok(nd_worker_run("play host", play_host, &visit, 30 * ND_SECOND_US, nullptr));
        scratch_remove(&root);
        cri_runtime_mntns_free(nullptr);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pods_mounts_are_excluded_and_no_others),
                cmocka_unit_test(a_copy_has_the_hosts_mounts_without_those_of_pods),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
