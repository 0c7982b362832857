/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/core/forward-rule.h"

static void ports_are_given_in_three_forms([[maybe_unused]] void **state) {
        static const struct {
                const char *text;
                uint16_t local, remote;
        } cases[] = {{"80", 80, 80}, {"8080:80", 8080, 80}, {":80", 0, 80}, {"0:80", 0, 80}, {"65535:1", 65535, 1}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                struct cli_forward_rule rule = {};

                expect_ok(cli_forward_rule_parse(cases[i].text, &rule));
                assert_int_equal(rule.local, cases[i].local);
                assert_int_equal(rule.remote, cases[i].remote);
        }
}

static void other_text_is_refused([[maybe_unused]] void **state) {
        static const char *const texts[] = {"",   ":",          "0",   "80:", "80:0", "65536", "1:65536", "http",
                                            "-1", "8080:80:80", " 80", "80 ", "+80",  "0x50",  "1:2:3",   "::80"};
        struct cli_forward_rule rule;

        for (size_t i = 0; i < nd_count_of(texts); i++)
                expect_error(cli_forward_rule_parse(texts[i], &rule), ND_INVALID, "invalid port");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ports_are_given_in_three_forms),
                cmocka_unit_test(other_text_is_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
