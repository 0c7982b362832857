/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "cri/bundle/build-mntns.h"
#include "cri/core/config.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/worker.h"

struct visit {
        struct cri_build_mntns *build_mntns;
        char *layer, *pods;
};

static bool is_there(const char *path) {
        return access(path, F_OK) == 0;
}

static struct nd_error *look(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct visit *visit = argument;
        nd_autofree char *inside = nd_format("%s/mounted", visit->pods);
        nd_autoclose int tree = -EBADF;
        int home = -EBADF;

        nd_try(cri_build_mntns_enter(visit->build_mntns, &home));
        if (is_there("/proc/self") || is_there("/etc"))
                return nd_error_new(ND_INTERNAL, 0, "the host's files are visible");
        if (!is_there(visit->layer))
                return nd_error_new(ND_INTERNAL, 0, "the layers are not visible");
        if (is_there(inside))
                return nd_error_new(ND_INTERNAL, 0, "another process's mount is visible");
        nd_try(nd_mount_fs_make("tmpfs", nullptr, 0, 0, &tree));
        nd_try(nd_dir_make(tree, "mounted", 0755));
        nd_try(nd_mount_attach(tree, AT_FDCWD, visit->pods));
        if (!is_there(inside))
                return nd_error_new(ND_INTERNAL, 0, "our own mount is not visible");
        cri_build_mntns_leave(&home);
        if (!is_there("/proc/self") || is_there(inside))
                return nd_error_new(ND_INTERNAL, 0, "not back in the original mount namespace");
        return nullptr;
}

static void a_copy_has_only_what_roots_are_built_from_and_is_private([[maybe_unused]] void **state) {
        char *root;
        nd_autofree char *run = nullptr, *layers = nullptr;
        struct cri_config config = {};
        struct visit visit = {};

        if (geteuid() != 0)
                skip_because("mounting needs privilege");
        root = scratch_make();
        scratch_mkdir(root, "run");
        scratch_mkdir(root, "state");
        scratch_mkdir(root, "state/pods");
        scratch_mkdir(root, "layers");
        scratch_text(root, "layers/one", "");
        run = nd_format("%s/run", root);
        layers = nd_format("%s/layers", root);
        config.run = run;
        config.state = nd_format("%s/state", root);
        visit.layer = nd_format("%s/layers/one", root);
        visit.pods = nd_format("%s/state/pods", root);
        expect_ok(cri_build_mntns_open(&config, layers, &visit.build_mntns));
        for (int i = 0; i < 2; i++)
                expect_ok(nd_worker_run("look around", look, &visit, 10 * ND_SECOND_US, nullptr));
        cri_build_mntns_free(visit.build_mntns);
        cri_build_mntns_free(nullptr);
        free(config.state);
        free(visit.layer);
        free(visit.pods);
        scratch_remove(&root);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_copy_has_only_what_roots_are_built_from_and_is_private),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
