/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/audit/audit.h"

static char *pod_of(const char *cgroup) {
        char *uid = cli_audit_pod_of_cgroup(cgroup);

        return uid ? uid : nd_strdup("none");
}

static void the_pod_is_in_the_path_of_its_cgroup([[maybe_unused]] void **state) {
        static const char uid[] = "0a1b2c3d-1111-2222-3333-444455556666";

        expect_text(pod_of("0::/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666/abc\n"), uid);
        expect_text(pod_of("0::/kubepods.slice/kubepods-burstable.slice/"
                           "kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-1.scope\n"),
                    uid);
        expect_text(pod_of("0::/kubepods/pod0a1b2c3d-1111-2222-3333-444455556666"), uid);
        /* the hash of a static pod's manifest */
        expect_text(pod_of("0::/kubepods/pod0123456789abcdef0123456789abcdef/x"), "0123456789abcdef0123456789abcdef");
}

static void other_groups_belong_to_no_pod([[maybe_unused]] void **state) {
        expect_text(pod_of("0::/system.slice/podman.service\n"), "none");
        expect_text(pod_of("0::/kubepods/pod1\n"), "none");
        expect_text(pod_of("0::/tripod0a1b2c3d4e5f/x\n"), "none");
        expect_text(pod_of("pod0a1b2c3d-1111"), "none");
        expect_text(pod_of(""), "none");
}

/* A group that a container makes below its own does not speak for another pod. */
static void the_outermost_pod_counts([[maybe_unused]] void **state) {
        expect_text(pod_of("0::/kubepods/podaaaaaaaa-1111/ctr/podbbbbbbbb-2222\n"), "aaaaaaaa-1111");
}

static void the_hosts_map_has_root_at_root([[maybe_unused]] void **state) {
        assert_true(cli_audit_is_host_map("         0          0 4294967295\n"));
        assert_false(cli_audit_is_host_map("         0 2038956032      65536\n"));
        assert_true(cli_audit_is_host_map("      1000       1000       5\n         0          0 1\n"));
        assert_false(cli_audit_is_host_map("      1000          0       5\n"));
        assert_false(cli_audit_is_host_map(""));
        assert_false(cli_audit_is_host_map("no numbers\n"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_pod_is_in_the_path_of_its_cgroup),
                cmocka_unit_test(other_groups_belong_to_no_pod),
                cmocka_unit_test(the_outermost_pod_counts),
                cmocka_unit_test(the_hosts_map_has_root_at_root),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
