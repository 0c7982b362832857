/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <unit/faults.h>
#include <unit/resources.h>
#include <unit/scratch.h>
#include <unit/stuck.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/userns.h"
#include "userns/probe.h"

static void needs_privilege(void) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};

        expect_ok(nd_userns_maps_own("uid", &maps));
        if (geteuid() != 0 || !nd_userns_maps_identity(&maps)) {
                nd_userns_maps_done(&maps);
                skip_because("the probe needs root in the initial user namespace");
        }
}

static void user_namespaces_are_probed_by_creating_one([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();

        needs_privilege();
        expect_ok(nd_probe_userns());
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

static void the_probe_reports_a_kernel_that_refuses([[maybe_unused]] void **state) {
        needs_privilege();
        faults_arm(FAULT_UNSHARE, 1, ENOSPC, false); /* as with user.max_user_namespaces = 0 */
        expect_error(nd_probe_userns(), ND_EXHAUSTED, "make a user namespace: No space left on device");
        assert_true(faults_disarm());
}

static void an_ordinary_user_s_namespace_is_probed_as_that_user([[maybe_unused]] void **state) {
        struct nd_error *error;

        needs_privilege();
        error = nd_probe_userns_unprivileged(65534);
        if (nd_error_code(error) == ND_DENIED) {
                nd_error_free(error);
                skip_because("this kernel lets no ordinary user make a user namespace");
        }
        expect_ok(error);
        assert_int_equal(geteuid(), 0); /* the worker switched users, this process did not */
}

static void idmapped_mounts_are_probed_on_the_directory_itself([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();
        struct nd_error *error = nd_probe_idmap(root);

        if (nd_error_code(error) == ND_UNIMPLEMENTED) {
                nd_error_free(error);
                scratch_remove(&root);
                skip_because("the filesystem of the scratch directory has no idmapped mounts");
        }
        expect_ok(error);
        expect_ok(nd_probe_idmap_tmpfs());
        expect_ok(nd_probe_overlay(root));
        assert_int_equal(scratch_entries(root, "."), 0); /* a probe leaves nothing behind */
        assert_int_equal(resources_children(), 0);
}

static void owners_that_are_not_mapped_are_seen_as_nobody([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();

        assert_int_equal(chown(root, 3000000, 3000000), 0);
        expect_ok(nd_probe_idmap(root));
}

static void the_error_names_a_filesystem_that_cannot_be_idmapped([[maybe_unused]] void **state) {
        needs_privilege();
        expect_error(nd_probe_idmap("/proc"), ND_UNIMPLEMENTED, "idmap a mount of proc");
        expect_error(nd_probe_overlay("/proc"), ND_UNIMPLEMENTED, "idmap a mount of proc");
}

static void the_error_names_a_missing_directory([[maybe_unused]] void **state) {
        expect_error(nd_probe_idmap("/nonexistent"), ND_NOT_FOUND, "open directory '/nonexistent'");
        expect_error(nd_probe_overlay("/nonexistent"), ND_NOT_FOUND, "open directory '/nonexistent'");
}

static void the_filesystem_of_a_path_has_a_name([[maybe_unused]] void **state) {
        expect_text(nd_probe_filesystem("/proc"), "proc");
        expect_text(nd_probe_filesystem("/nonexistent"), "?");
}

/* SIGKILL does not end the wait for this server. */
static void a_server_that_does_not_respond_costs_seconds([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autofree char *mount = nd_format("%s/mnt", root), *below = nd_format("%s/mnt/below", root);
        uint64_t begin = nd_clock_us();
        struct stuck stuck;

        scratch_mkdir(root, "mnt");
        if (!stuck_make(mount, &stuck))
                skip_because("FUSE cannot be used here");
        expect_text(nd_probe_filesystem(mount), "fuse");
        expect_ok(nd_probe_directory(mount));
        expect_error(nd_probe_directory(below), ND_DEADLINE, "directory probe: timed out");
        assert_true(nd_clock_us() - begin < 30 * ND_SECOND_US);
        stuck_release(&stuck);
        assert_true(waitpid(-1, nullptr, 0) > 0); /* the probe, which could not be reaped */
}

static void engine(const char *root, const char *name, const char *text) {
        nd_autofree char *path = nd_format("%s/%s", root, name);

        scratch_text(root, name, text);
        assert_int_equal(chmod(path, 0755), 0);
}

/* Engines that treat /dev as the real ones do, before and after the fix. */
static void an_engine_that_follows_dev_out_of_the_root_is_detected([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory root = scratch_make();
        size_t before = resources_descriptors();
        nd_autofree char *follows = nd_format("%s/follows", root), *stays = nd_format("%s/stays", root),
                         *broken = nd_format("%s/broken", root);

        if (nd_has_prefix(root, "/tmp/")) {
                scratch_remove(&root);
                skip_because("the probe covers /tmp, where the engines are");
        }
#define BUNDLE "for word; do test \"$last\" = --bundle && cd \"$word/rootfs\"; last=$word; done\n"
        engine(root, "follows", "#!/bin/sh\n" BUNDLE "touch dev/null dev/ptmx; exit 1\n");
        engine(root, "stays", "#!/bin/sh\n" BUNDLE "test -L dev || touch dev/null; exit 1\n");
        engine(root, "broken", "#!/bin/sh\nexit 1\n");
        expect_error(nd_probe_engine_dev(follows, false, nullptr), ND_PRECONDITION,
                     "follows a link at /dev of an image to the host");
        expect_error(nd_probe_engine_dev(follows, true, nullptr), ND_PRECONDITION, "CVE-2026-47766");
        expect_ok(nd_probe_engine_dev(stays, false, nullptr));
        expect_ok(nd_probe_engine_dev(stays, true, nullptr));
        expect_error(nd_probe_engine_dev(broken, false, nullptr), ND_UNKNOWN, "made no devices for a container");
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(user_namespaces_are_probed_by_creating_one),
                cmocka_unit_test(the_probe_reports_a_kernel_that_refuses),
                cmocka_unit_test(an_ordinary_user_s_namespace_is_probed_as_that_user),
                cmocka_unit_test(idmapped_mounts_are_probed_on_the_directory_itself),
                cmocka_unit_test(owners_that_are_not_mapped_are_seen_as_nobody),
                cmocka_unit_test(the_error_names_a_filesystem_that_cannot_be_idmapped),
                cmocka_unit_test(the_error_names_a_missing_directory),
                cmocka_unit_test(the_filesystem_of_a_path_has_a_name),
                cmocka_unit_test(a_server_that_does_not_respond_costs_seconds),
                cmocka_unit_test(an_engine_that_follows_dev_out_of_the_root_is_detected),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
