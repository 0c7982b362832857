/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/pod-volumes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#define UID "0f0e-11"

static char *kubelet(void) {
        char *top = scratch_make();

        scratch_mkdir(top, "pods/" UID "/volumes/kubernetes.io~empty-dir/cache");
        scratch_mkdir(top, "pods/" UID "/volumes/kubernetes.io~local-volume/disk");
        scratch_text(top, "pods/" UID "/userns", "{}");
        scratch_mkdir(top, "pods/without/volumes");
        return top;
}

static void only_files_of_the_pod_are_private([[maybe_unused]] void **state) {
        static const struct {
                const char *path;
                bool is_private;
        } cases[] = {
                {"pods/" UID "/volumes/kubernetes.io~empty-dir/cache", true},
                {"pods/" UID "/volumes/kubernetes.io~configmap/c", true},
                {"pods/" UID "/volumes/kubernetes.io~projected/kube-api-access-x", true},
                {"pods/" UID "/volumes/kubernetes.io~secret/s", true},
                {"pods/" UID "/volumes/kubernetes.io~downward-api/d/labels", true},
                {"pods/" UID "/etc-hosts", true},
                {"pods/" UID "/containers/main/0a1b", true},
                {"pods/" UID "/volume-subpaths/cache/main/0", true},
                /* of others, or of all */
                {"pods/" UID "/volume-subpaths/disk/main/0", false},
                {"pods/" UID "/volume-subpaths/missing/main/0", false},
                {"pods/" UID "/volume-subpaths/", false},
                {"pods/" UID "/volumes/kubernetes.io~csi/pvc/mount", false},
                {"pods/" UID "/volumes/kubernetes.io~local-volume/disk", false},
                {"pods/" UID "/volumes/kubernetes.io~nfs/share", false},
                {"pods/" UID "/volumes/kubernetes.io~empty-dir/", false},
                {"pods/" UID "/volumes/kubernetes.io~empty-dirs/x", false},
                {"pods/" UID "/userns", false},
                {"pods/" UID, false},
                {"pods/without/volumes/kubernetes.io~empty-dir/x", false},
                {"srv/data", false},
        };
        scratch_directory top = kubelet();

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *path = nd_format("%s/%s", top, cases[i].path);

                if (cri_pod_volume_is_private(path, UID) != cases[i].is_private)
                        fail_msg("%s", cases[i].path);
                assert_false(cri_pod_volume_is_private(path, "other"));
                assert_false(cri_pod_volume_is_private(path, ""));
        }
}

static void a_pod_without_a_record_has_no_private_volumes([[maybe_unused]] void **state) {
        scratch_directory top = kubelet();
        nd_autofree char *path = nd_format("%s/pods/without/volumes/kubernetes.io~empty-dir/x", top),
                         *strange = nd_format("%s/pods/../pods/" UID "/etc-hosts", top);

        assert_false(cri_pod_volume_is_private(path, "without"));
        assert_false(cri_pod_volume_is_private(strange, "../pods/" UID));
}

/* Without privilege, owners that change to themselves. */
static void an_empty_dir_that_was_given_to_the_pod_is_not_walked_again([[maybe_unused]] void **state) {
        scratch_directory top = kubelet();
        nd_autofree char *path = nd_format("%s/pods/" UID "/volumes/kubernetes.io~empty-dir/cache", top);
        nd_autoclose int fd = open(path, O_PATH | O_CLOEXEC);
        const struct nd_tree_shift shift = {.uid = getuid(), .gid = getgid(), .count = 65536},
                                   other = {.uid = 1 << 20, .gid = 1 << 20, .count = 65536};
        struct stat st;

        if (geteuid() != 0)
                skip_because("changing owners needs privilege");
        scratch_text(top, "pods/" UID "/volumes/kubernetes.io~empty-dir/cache/old", "");
        expect_ok(cri_pod_volume_shift(path, fd, &other));
        assert_int_equal(fstatat(fd, "old", &st, 0), 0);
        assert_int_equal(st.st_uid, 1 << 20);
        scratch_text(top, "pods/" UID "/volumes/kubernetes.io~empty-dir/cache/new", "");
        expect_ok(cri_pod_volume_shift(path, fd, &other));
        assert_int_equal(fstatat(fd, "new", &st, 0), 0);
        assert_int_equal(st.st_uid, shift.uid);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_files_of_the_pod_are_private),
                cmocka_unit_test(a_pod_without_a_record_has_no_private_volumes),
                cmocka_unit_test(an_empty_dir_that_was_given_to_the_pod_is_not_walked_again),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
