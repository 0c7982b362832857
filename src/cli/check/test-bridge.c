/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#include "cli/check/bridge.h"

static void expect_verdict(const char *volumes, const char *helper, const char *device, const char *filesystem, bool serves,
                           const char *found, const char *advice) {
        const struct cli_runtime_settings settings = {.volumes = (char *) volumes, .bridge_helper = (char *) helper};
        nd_cleanup(cli_bridge_verdict_done) struct cli_bridge_verdict verdict = {};

        cli_bridge_judge(&settings, device, filesystem, &verdict);
        assert_int_equal(verdict.serves, serves);
        expect_contains(verdict.found, found);
        expect_contains(verdict.advice, advice);
}

static void a_bridge_that_is_off_can_be_turned_on([[maybe_unused]] void **state) {
        expect_verdict("bridge=off", "/bin/sh", "/dev/null", "nfs4", false, "nodens-bridge is off", "volumes: {bridge: auto}");
        expect_verdict("", "/bin/sh", "/dev/null", "nfs4", false, "nodens-bridge is off", "volumes: {bridge: auto}");
}

static void a_missing_program_or_device_is_named([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autofree char *file = nd_format("%s/plain", root);

        scratch_text(root, "plain", "");
        expect_verdict("bridge=auto", "/nonexistent/b", "/dev/null", "nfs4", false, "/nonexistent/b: No such file",
                       "bridgeHelper");
        assert_int_equal(chmod(file, 0600), 0);
        expect_verdict("bridge=auto", file, "/dev/null", "nfs4", false, "Permission denied", "bridgeHelper");
        expect_verdict("bridge=auto", "/bin/sh", "/nonexistent/fuse", "nfs4", false, "needs /nonexistent/fuse",
                       "modprobe fuse");
}

static void the_rule_for_the_filesystem_is_named([[maybe_unused]] void **state) {
        static const char volumes[] = "bridge=auto,nfs4=caller,fuse.s3fs=1000:1001";

        expect_verdict(volumes, "/bin/sh", "/dev/null", "nfs4", true, "serves it, as caller (a rule for nfs4)", "inspect");
        expect_verdict(volumes, "/bin/sh", "/dev/null", "fuse.s3fs", true, "all files belong to 1000:1001", "inspect");
        expect_verdict(volumes, "/bin/sh", "/dev/null", "nfs", true, "nodens-bridge serves it", "inspect");
        expect_verdict(volumes, "/bin/sh", "/dev/null", "s3fs", true, "nodens-bridge serves it", "inspect");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bridge_that_is_off_can_be_turned_on),
                cmocka_unit_test(a_missing_program_or_device_is_named),
                cmocka_unit_test(the_rule_for_the_filesystem_is_named),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
