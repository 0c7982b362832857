/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/output/format.h"

static void one_object_is_singular([[maybe_unused]] void **state) {
        char text[FORMAT_COUNT];

        assert_string_equal(cli_format_count(0, "pod", text), "0 pods");
        assert_string_equal(cli_format_count(1, "pod", text), "1 pod");
        assert_string_equal(cli_format_count(2, "container", text), "2 containers");
        assert_string_equal(cli_format_count(UINT64_MAX, "container", text), "18446744073709551615 containers");
}

static void an_age_has_its_largest_unit_from_two_on([[maybe_unused]] void **state) {
        static const struct {
                uint64_t seconds;
                const char *text;
        } cases[] = {{0, "0s"}, {119, "119s"}, {120, "2m"}, {7199, "119m"}, {7200, "2h"}, {172800, "2d"}};
        char text[FORMAT_AGE];

        for (size_t i = 0; i < nd_count_of(cases); i++)
                assert_string_equal(cli_format_age(1, cases[i].seconds * 1000000000 + 1, text), cases[i].text);
        assert_string_equal(cli_format_age(0, 5, text), "-");
        assert_string_equal(cli_format_age(9, 5, text), "0s"); /* the clock was set back */
}

static void a_size_has_at_most_three_digits_before_the_point([[maybe_unused]] void **state) {
        static const struct {
                uint64_t bytes;
                const char *text;
        } cases[] = {{0, "0 B"},           {999, "999 B"},     {1000, "1.0 kB"},
                     {999949, "999.9 kB"}, {999950, "1.0 MB"}, {5800000, "5.8 MB"}};
        char text[FORMAT_SIZE];

        for (size_t i = 0; i < nd_count_of(cases); i++)
                assert_string_equal(cli_format_size(cases[i].bytes, text), cases[i].text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_object_is_singular),
                cmocka_unit_test(an_age_has_its_largest_unit_from_two_on),
                cmocka_unit_test(a_size_has_at_most_three_digits_before_the_point),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
