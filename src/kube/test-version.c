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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(policy_versions_are_latest_or_a_minor_of_1),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
