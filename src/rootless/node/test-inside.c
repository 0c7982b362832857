/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "rootless/node/inside.h"

/* As podman gives them to the root of a container. */
#define STATUS "Name:\tnodens-rootless\nCapEff:\t00000000800405fb\nCapBnd:\t00000000800405fb\n"
#define ROOT_MOUNT "700 600 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/l\n"
#define PROC_MOUNT "701 700 0:61 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw\n"
#define BINFMT_MOUNT "702 701 0:62 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n"
#define MASK_MOUNT "703 701 0:5 /null /proc/kcore rw,nosuid - devtmpfs devtmpfs rw\n"

static struct rootless_inside_facts container(void) {
        return (struct rootless_inside_facts) {.status = STATUS, .mounts = ROOT_MOUNT PROC_MOUNT BINFMT_MOUNT};
}

static void root_of_a_container_can_start_a_node([[maybe_unused]] void **state) {
        struct rootless_inside_facts facts = container();

        expect_ok(rootless_inside_check(&facts));
}

static void the_hosts_user_namespace_is_refused([[maybe_unused]] void **state) {
        struct rootless_inside_facts facts = container();

        facts.initial = true;
        expect_error(rootless_inside_check(&facts), ND_PRECONDITION, "hostUsers: false");
}

static void other_users_of_the_container_are_refused([[maybe_unused]] void **state) {
        struct rootless_inside_facts facts = container();

        facts.uid = 1000;
        expect_error(rootless_inside_check(&facts), ND_PRECONDITION, "user 1000 of the container");
}

static void a_missing_capability_is_named([[maybe_unused]] void **state) {
        struct rootless_inside_facts facts = container();

        facts.status = "Name:\tx\nCapEff:\t00000000000405fb\n";
        expect_error(rootless_inside_check(&facts), ND_PRECONDITION, "--cap-add SETFCAP");
        facts.status = "Name:\tx\nCapEff:\t0000000000000000\n";
        expect_error(rootless_inside_check(&facts), ND_PRECONDITION, "--cap-add SETGID");
        facts.status = "";
        expect_error(rootless_inside_check(&facts), ND_PRECONDITION, "CAP_SETGID");
}

static void a_masked_proc_is_refused_with_the_path([[maybe_unused]] void **state) {
        struct rootless_inside_facts facts = container();

        facts.mounts = ROOT_MOUNT PROC_MOUNT MASK_MOUNT;
        expect_error(rootless_inside_check(&facts), ND_PRECONDITION, "'/proc/kcore' of the container is masked");
}

static void short_lines_of_mounts_are_skipped([[maybe_unused]] void **state) {
        struct rootless_inside_facts facts = container();

        facts.mounts = "\n1 2\n3 4 5 6\n     \n/proc/kcore\n1 2 3 4";
        expect_ok(rootless_inside_check(&facts));
        facts.mounts = "1 2 3 4 /proc/kcore";
        expect_error(rootless_inside_check(&facts), ND_PRECONDITION, "'/proc/kcore'");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(root_of_a_container_can_start_a_node),
                cmocka_unit_test(the_hosts_user_namespace_is_refused),
                cmocka_unit_test(other_users_of_the_container_are_refused),
                cmocka_unit_test(a_missing_capability_is_named),
                cmocka_unit_test(a_masked_proc_is_refused_with_the_path),
                cmocka_unit_test(short_lines_of_mounts_are_skipped),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
