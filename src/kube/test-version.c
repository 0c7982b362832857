/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/version.h"

#include <unit/expect.h>

static void policy_versions_are_latest_or_a_minor_of_1([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "", "1.24", "v1", "v1.", "v1.01", "v2.0", "v1.-1", "v1.+1", "v1.2 ", "Latest", "v1.99999999999999999999"};
        struct nd_kube_version version;

        assert_int_equal(nd_kube_version_parse("latest", &version), 0);
        assert_true(version.latest);
        assert_int_equal(nd_kube_version_parse("v1.0", &version), 0);
        assert_true(!version.latest && version.minor == 0);
        assert_int_equal(nd_kube_version_parse("v1.4294967297", &version), 0);
        expect_text(nd_kube_version_text(version), "v1.4294967297");
        expect_text(nd_kube_version_text(ND_POLICY_LATEST), "latest");
        for (size_t i = 0; i < nd_count_of(bad); i++)
                assert_int_equal(nd_kube_version_parse(bad[i], &version), -EINVAL);
}

static void component_versions_are_semantic([[maybe_unused]] void **state) {
        static const char *const good[] = {"1.30.0",      "v1.30.0",      "1.30.0-rc.0", "1.29.8-20+15d27f9ba1c119",
                                           "1.30.0+k3s1", "0.0.0-a.b-c.0"};
        static const char *const bad[] = {"",        "1.30",   "1.30.0.1",  "01.3.0",         "1.030.0",
                                          "vv1.3.0", "1.3.0-", "1.3.0+",    "1.3.0-a..b",     "1.3.0-01",
                                          "bogus",   "1.3.x",  "1.3.0-a_b", "4294967296.0.0", "1.3.0 "};
        struct nd_version version;

        for (size_t i = 0; i < nd_count_of(good); i++)
                assert_int_equal(nd_version_parse(good[i], &version), 0);
        for (size_t i = 0; i < nd_count_of(bad); i++)
                assert_int_equal(nd_version_parse(bad[i], &version), -EINVAL);
}

static void only_the_three_numbers_are_compared([[maybe_unused]] void **state) {
        struct nd_version a, b;

        assert_int_equal(nd_version_parse("v1.30.0-rc.0", &a), 0);
        assert_int_equal(nd_version_parse("1.30.0", &b), 0);
        assert_int_equal(nd_version_compare(&a, &b), 0);
        assert_int_equal(nd_version_parse("1.29.8-20+15d27f9ba1c119", &a), 0);
        assert_true(nd_version_compare(&a, &b) < 0);
        assert_int_equal(nd_version_parse("2.0.0", &a), 0);
        assert_true(nd_version_compare(&a, &b) > 0);
        assert_int_equal(nd_version_parse("1.30.1", &a), 0);
        assert_true(nd_version_compare(&a, &b) > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(policy_versions_are_latest_or_a_minor_of_1),
                cmocka_unit_test(component_versions_are_semantic),
                cmocka_unit_test(only_the_three_numbers_are_compared),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
