/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "kube/log-line.h"

static bool parse(const char *text, struct nd_log_line *ret) {
        return nd_log_line_parse(text, strlen(text), ret);
}

static void a_line_has_a_time_a_stream_and_a_tag([[maybe_unused]] void **state) {
        struct nd_log_line line;

        assert_true(parse("2016-10-06T00:17:09.669794202Z stdout F hello  world ", &line));
        assert_int_equal(line.time, 1475713029669794202);
        assert_int_equal(line.stamp_length, 30);
        assert_int_equal(line.stream, ND_LOG_STDOUT);
        assert_true(line.whole);
        assert_int_equal(line.length, 13);
        assert_memory_equal(line.text, "hello  world ", 13);
        assert_true(parse("2016-10-06T02:17:09.5+02:00 stderr P:x:y piece", &line));
        assert_int_equal(line.time, 1475713029500000000);
        assert_int_equal(line.stream, ND_LOG_STDERR);
        assert_false(line.whole);
        assert_memory_equal(line.text, "piece", 5);
}

static void an_empty_text_may_lack_its_space([[maybe_unused]] void **state) {
        struct nd_log_line line;

        assert_true(parse("2016-10-06T00:17:09Z stdout F ", &line));
        assert_int_equal(line.length, 0);
        assert_true(parse("2016-10-06T00:17:09Z stdout F", &line));
        assert_int_equal(line.length, 0);
}

static void the_text_may_contain_any_byte([[maybe_unused]] void **state) {
        static const char bytes[] = "2016-10-06T00:17:09Z stdout F a\0\033[2J\xff";
        struct nd_log_line line;

        assert_true(nd_log_line_parse(bytes, sizeof bytes - 1, &line));
        assert_int_equal(line.length, 7);
}

static void invalid_lines_are_rejected([[maybe_unused]] void **state) {
        static const char *const cases[] = {"",
                                            "hello",
                                            "{\"log\":\"docker's\\n\",\"stream\":\"stdout\"}",
                                            "2016-10-06T00:17:09Z",
                                            "2016-10-06T00:17:09Z ",
                                            "2016-10-06T00:17:09Z stdin F x",
                                            "2016-10-06T00:17:09Z stdout",
                                            "2016-10-06T00:17:09Z stdout X x",
                                            "2016-10-06T00:17:09Z stdout Fx",
                                            "2016-10-06T00:17:09Z  stdout F x",
                                            "2016-13-06T00:17:09Z stdout F x",
                                            "2015-02-29T00:17:09Z stdout F x",
                                            "2016-10-06T24:17:09Z stdout F x",
                                            "2016-10-06T00:17:09.Z stdout F x",
                                            "2016-10-06T00:17:09 stdout F x",
                                            "1970-01-01T00:00:00+00:01 stdout F x",
                                            "2016-10-06 00:17:09Z stdout F x"};
        struct nd_log_line line;

        for (size_t i = 0; i < nd_count_of(cases); i++)
                if (parse(cases[i], &line))
                        fail_msg("'%s' was taken for a line", cases[i]);
}

static void dates_follow_the_calendar([[maybe_unused]] void **state) {
        static const struct {
                const char *text;
                uint64_t seconds;
        } cases[] = {{"1970-01-01T00:00:00Z", 0},
                     {"2000-02-29T12:00:00Z", 951825600},
                     {"2000-03-01T00:00:00Z", 951868800},
                     {"2026-11-15T13:08:00Z", 1794748080},
                     {"2100-03-01T00:00:00Z", 4107542400}};
        uint64_t time;

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                assert_true(nd_log_line_time_parse(cases[i].text, strlen(cases[i].text), &time));
                assert_int_equal(time, cases[i].seconds * 1000000000);
        }
        assert_false(nd_log_line_time_parse("2026-11-15T13:08:00Z ", 21, &time));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_line_has_a_time_a_stream_and_a_tag),
                cmocka_unit_test(an_empty_text_may_lack_its_space),
                cmocka_unit_test(the_text_may_contain_any_byte),
                cmocka_unit_test(invalid_lines_are_rejected),
                cmocka_unit_test(dates_follow_the_calendar),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
