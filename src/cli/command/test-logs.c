/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/command/logs.h"

static void since_takes_an_age_or_a_time([[maybe_unused]] void **state) {
        constexpr uint64_t second = 1000000000;
        constexpr uint64_t now = 1000000 * second;
        uint64_t since = 1;

        assert_true(cli_logs_since("90s", now, &since));
        assert_int_equal(since, now - 90 * second);
        assert_true(cli_logs_since("10m", now, &since));
        assert_int_equal(since, now - 600 * second);
        assert_true(cli_logs_since("2h", now, &since));
        assert_int_equal(since, now - 7200 * second);
        assert_true(cli_logs_since("1d", now, &since));
        assert_int_equal(since, now - 86400 * second);
        assert_true(cli_logs_since("1970-01-01T00:01:00Z", now, &since));
        assert_int_equal(since, 60 * second);
        assert_true(cli_logs_since("4000000000d", now, &since)); /* before 1970: everything */
        assert_int_equal(since, 0);
}

static void other_values_of_since_are_rejected([[maybe_unused]] void **state) {
        static const char *const cases[] = {"",    "s",     "10",           "10w",       "-5s",
                                            "5 s", "1h30m", "99999999999s", "yesterday", "2026-11-15"};
        uint64_t since;

        for (size_t i = 0; i < nd_count_of(cases); i++)
                if (cli_logs_since(cases[i], 1, &since))
                        fail_msg("'%s' was accepted", cases[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(since_takes_an_age_or_a_time),
                cmocka_unit_test(other_values_of_since_are_rejected),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
