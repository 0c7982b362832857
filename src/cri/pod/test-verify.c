/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/pod/verify.h"

#include <unit/expect.h>

static void expect_finding(const struct cri_verify_checks *checks, const char *name, enum cri_verify_result result,
                           const char *words) {
        nd_vector_each (check, checks) {
                if (!nd_streq(check->name, name))
                        continue;
                assert_int_equal(check->result, result);
                expect_contains(check->text, words);
                return;
        }
        fail_msg("no check '%s'", name);
}

static void an_id_map_must_be_the_single_requested_line([[maybe_unused]] void **state) {
        const struct nd_userns_map wanted = {.outside = 65536, .count = 65536};
        nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {};

        cri_verify_map("right", "         0      65536      65536\n", &wanted, &checks);
        cri_verify_map("other", "         0     131072      65536\n", &wanted, &checks);
        cri_verify_map("host", "         0          0 4294967295\n", &wanted, &checks);
        cri_verify_map("two", "0 65536 1\n1 70000 1\n", &wanted, &checks);
        cri_verify_map("odd", "what\n", &wanted, &checks);
        expect_finding(&checks, "right", VERIFY_PASSED, "0 to 65535 are 65536 to 131071");
        expect_finding(&checks, "other", VERIFY_FAILED, "131072");
        expect_finding(&checks, "host", VERIFY_FAILED, "");
        expect_finding(&checks, "two", VERIFY_FAILED, "2 lines");
        expect_finding(&checks, "odd", VERIFY_FAILED, "");
}

static void the_cgroup_must_be_below_the_pods([[maybe_unused]] void **state) {
        static const struct {
                const char *text, *parent;
                enum cri_verify_result result;
        } cases[] = {
                {"0::/kubepods/pod1/abc\n", "/kubepods/pod1", VERIFY_PASSED},
                {"0::/kubepods/pod12/abc\n", "/kubepods/pod1", VERIFY_FAILED},
                {"0::/kubepods/pod1\n", "/kubepods/pod1", VERIFY_FAILED},
                {"0::/system.slice/x\n", "/kubepods/pod1", VERIFY_FAILED},
                {"0::/kubepods.slice/kubepods-pod1.slice/nodens-abc.scope\n", "/kubepods.slice/kubepods-pod1.slice",
                 VERIFY_PASSED},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {};

                cri_verify_cgroup(cases[i].text, cases[i].parent, &checks);
                assert_int_equal(checks.count, 1);
                assert_int_equal(checks.items[0].result, cases[i].result);
        }
}

static void mounts_are_checked_for_idmapping_and_read_only([[maybe_unused]] void **state) {
        static const char table[] = "1 0 8:1 / / rw,relatime - overlay overlay rw\n"
                                    "2 1 8:1 /a /data rw,relatime,idmapped shared:1 - ext4 /dev/sda rw\n"
                                    "3 1 8:1 /b /with\\040blank ro,relatime - ext4 /dev/sda rw\n"
                                    "4 1 8:1 /c /plain rw,relatime - ext4 /dev/sda rw\n"
                                    "5 1 0:9 / /bridged rw,nosuid - fuse.nodens-bridge volume rw\n"
                                    "6 1 8:1 /d /replaced rw,relatime - ext4 /dev/sda rw\n"
                                    "7 1 8:1 /e /chowned rw,relatime - ext4 /dev/sda rw";
        struct cri_mount_request mounts[] = {
                {.container_path = (char *) "/data", .image = (char *) "", .idmapped = true},
                {.container_path = (char *) "/with blank/", .image = (char *) "", .read_only = true},
                {.container_path = (char *) "/plain", .image = (char *) "", .idmapped = true},
                {.container_path = (char *) "/gone", .image = (char *) ""},
                {.container_path = (char *) "/bridged", .image = (char *) "", .idmapped = true},
                {.container_path = (char *) "/replaced", .image = (char *) "", .idmapped = true},
                {.container_path = (char *) "/chowned", .image = (char *) "", .idmapped = true},
        };
        struct cri_mount_mapping mappings[] = {{MAPPING_IDMAPPED, ""}, {MAPPING_NONE, ""},        {MAPPING_IDMAPPED, ""},
                                               {MAPPING_NONE, ""},     {MAPPING_BRIDGED, "nfs4"}, {MAPPING_BRIDGED, "nfs4"},
                                               {MAPPING_CHOWNED, ""}};
        struct cri_container container = {.request = {.mounts = {.items = mounts, .count = nd_count_of(mounts)}},
                                          .mappings = {.items = mappings, .count = nd_count_of(mappings)}};
        nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {};

        cri_verify_mounts(table, &container, &checks);
        expect_finding(&checks, "mount /data", VERIFY_PASSED, "idmapped, writable");
        expect_finding(&checks, "mount /with blank/", VERIFY_PASSED, "read-only");
        expect_finding(&checks, "mount /plain", VERIFY_FAILED, "not idmapped");
        expect_finding(&checks, "mount /gone", VERIFY_FAILED, "missing");
        expect_finding(&checks, "mount /bridged", VERIFY_PASSED, "bridged, writable");
        expect_finding(&checks, "mount /replaced", VERIFY_FAILED, "not idmapped");
        expect_finding(&checks, "mount /chowned", VERIFY_PASSED, "not idmapped");
}

static void checks_survive_formatting_and_parsing([[maybe_unused]] void **state) {
        nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {}, again = {}, none = {};
        nd_autofree char *text = nullptr;

        cri_verify_map("user IDs", "0 1 2\n", &(struct nd_userns_map) {.outside = 1, .count = 2}, &checks);
        cri_verify_map("odd \"name\"\n", "", &(struct nd_userns_map) {.count = 1}, &checks);
        text = cri_verify_format(&checks);
        cri_verify_parse(text, &again);
        assert_int_equal(again.count, 2);
        assert_string_equal(again.items[1].name, "odd \"name\"\n");
        assert_int_equal(again.items[0].result, VERIFY_PASSED);
        assert_int_equal(again.items[1].result, VERIFY_FAILED);
        cri_verify_parse("", &none);
        cri_verify_parse("{}", &none);
        cri_verify_parse("[1]", &none);
        assert_int_equal(none.count, 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_id_map_must_be_the_single_requested_line),
                cmocka_unit_test(the_cgroup_must_be_below_the_pods),
                cmocka_unit_test(mounts_are_checked_for_idmapping_and_read_only),
                cmocka_unit_test(checks_survive_formatting_and_parsing),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
