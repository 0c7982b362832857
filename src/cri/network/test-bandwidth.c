/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cri/network/bandwidth.h"

static struct nd_error *limit(const char *ingress, const char *egress, struct cri_bandwidth *ret) {
        struct cri_pair items[3] = {{.key = (char *) "io.example/other", .value = (char *) "x"}};
        struct cri_pairs annotations = {.items = items, .count = 1};

        if (ingress)
                items[annotations.count++] = (struct cri_pair) {.key = (char *) BANDWIDTH_INGRESS, .value = (char *) ingress};
        if (egress)
                items[annotations.count++] = (struct cri_pair) {.key = (char *) BANDWIDTH_EGRESS, .value = (char *) egress};
        return cri_bandwidth_of(&annotations, ret);
}

static void each_direction_has_its_own_limit_or_none([[maybe_unused]] void **state) {
        struct cri_bandwidth found = {.ingress = 7, .egress = 7};

        expect_ok(limit(nullptr, nullptr, &found));
        assert_int_equal(found.ingress + found.egress, 0);
        expect_ok(limit("10M", nullptr, &found));
        assert_int_equal(found.ingress, 10000000);
        assert_int_equal(found.egress, 0);
        expect_ok(limit("1k", "1P", &found));
        assert_int_equal(found.ingress, 1000);
        assert_int_equal(found.egress, 1000000000000000);
}

static void an_invalid_limit_is_refused_and_changes_nothing([[maybe_unused]] void **state) {
        struct cri_bandwidth found = {.ingress = 7};

        expect_error(limit("fast", nullptr, &found), ND_INVALID, "kubernetes.io/ingress-bandwidth: 'fast' is not a quantity");
        expect_error(limit("", nullptr, &found), ND_INVALID, "'' is not a quantity");
        expect_error(limit("10M", "999", &found), ND_INVALID, "egress-bandwidth: '999' is not between 1k and 1P");
        expect_error(limit("1001T", nullptr, &found), ND_INVALID, "not between");
        expect_error(limit("-10M", nullptr, &found), ND_INVALID, "not between");
        expect_error(limit("1e400", nullptr, &found), ND_INVALID, "is not a quantity");
        assert_int_equal(found.ingress, 7);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_direction_has_its_own_limit_or_none),
                cmocka_unit_test(an_invalid_limit_is_refused_and_changes_nothing),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
