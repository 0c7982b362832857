/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/text.h"

static void an_empty_text_is_an_empty_string([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(10);

        assert_string_equal(nd_text_get(&text), "");
        expect_text(nd_text_steal(&text), "");
        assert_false(text.overflow);
}

static void a_text_grows_and_stays_terminated([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(100000);

        for (int i = 0; i < 10000; i++)
                nd_text_addf(&text, "%d", i % 10);
        assert_int_equal(text.length, 10000);
        assert_int_equal(strlen(nd_text_get(&text)), 10000);
        assert_memory_equal(nd_text_get(&text), "0123456789012", 13);
        assert_false(text.overflow);
}

static void text_above_the_ceiling_is_dropped_and_sets_overflow([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(5);

        nd_text_add(&text, "abc");
        assert_false(text.overflow);
        nd_text_add(&text, "def");
        assert_true(text.overflow);
        assert_string_equal(nd_text_get(&text), "abcde");
        nd_text_add(&text, "g");
        assert_string_equal(nd_text_get(&text), "abcde");
}

static void exactly_the_ceiling_is_not_an_overflow([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(3);

        nd_text_add(&text, "abc");
        assert_false(text.overflow);
        nd_text_add(&text, "");
        assert_false(text.overflow);
}

static void a_stolen_text_leaves_an_empty_one_with_the_same_ceiling([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(4);

        nd_text_add(&text, "12345");
        expect_text(nd_text_steal(&text), "1234");
        assert_false(text.overflow);
        nd_text_add(&text, "abcd");
        assert_false(text.overflow);
        assert_string_equal(nd_text_get(&text), "abcd");
}

static void numbers_are_decimal_digits_and_nothing_else([[maybe_unused]] void **state) {
        static const char *const wrong[] = {"", " 1", "1 ", "+1", "-1", "0x1", "1_0", "1.0", "1e3", "\n", "12a", "٣"};
        uint32_t value = 7;

        for (size_t i = 0; i < nd_count_of(wrong); i++)
                assert_int_equal(nd_text_parse_u32(wrong[i], &value), -EINVAL);
        assert_int_equal(value, 7); /* outputs are written on success only */
        assert_int_equal(nd_text_parse_u32("007", &value), 0);
        assert_int_equal(value, 7);
        assert_int_equal(nd_text_parse_u32("4294967295", &value), 0);
        assert_int_equal(value, UINT32_MAX);
}

static void a_number_above_its_ceiling_is_out_of_range([[maybe_unused]] void **state) {
        uint64_t big = 1;
        uint32_t second, value = 1;

        assert_int_equal(nd_text_parse_u32("4294967296", &value), -ERANGE);
        assert_int_equal(nd_text_parse_u64("18446744073709551615", UINT64_MAX, &big), 0);
        assert_true(big == UINT64_MAX);
        assert_int_equal(nd_text_parse_u64("18446744073709551616", UINT64_MAX, &big), -ERANGE);
        assert_int_equal(nd_text_parse_u64("99999999999999999999999", UINT64_MAX, &big), -ERANGE);
        assert_int_equal(nd_text_parse_u64("101", 100, &big), -ERANGE);
        assert_int_equal(nd_text_parse_u32_pair("1:4294967295", &value, &second), 0);
        assert_int_equal(value, 1);
        assert_true(second == UINT32_MAX);
        assert_int_equal(nd_text_parse_u32_pair("1", &value, &second), -EINVAL);
        assert_int_equal(nd_text_parse_u32_pair(":1", &value, &second), -EINVAL);
        assert_int_equal(nd_text_parse_u32_pair("1:2:3", &value, &second), -EINVAL);
        assert_int_equal(nd_text_parse_u32_pair("1:4294967296", &value, &second), -ERANGE);
        assert_int_equal(nd_text_parse_u64("100", 100, &big), 0);
}

/* The right column was printed by Go's %q. */
static void quoting_equals_gos([[maybe_unused]] void **state) {
        static const struct {
                const char *text;
                const char *quoted;
        } cases[] = {
                {"", "\"\""},
                {"plain", "\"plain\""},
                {"a\"b\\c", "\"a\\\"b\\\\c\""},
                {"\a\b\f\n\r\t\v", "\"\\a\\b\\f\\n\\r\\t\\v\""},
                {"\x01\x1f\x7f", "\"\\x01\\x1f\\x7f\""},
                {"\xff", "\"\\xff\""},
                {"a\xc3(", "\"a\\xc3(\""},
                {"\xc0\x80", "\"\\xc0\\x80\""},          /* overlong */
                {"\xed\xa0\x80", "\"\\xed\\xa0\\x80\""}, /* a surrogate */
                {"é€😀", "\"é€😀\""},
                {"\xc2\x80", "\"\\u0080\""},
                {"\xc2\xa0", "\"\\u00a0\""},
                {"\xe2\x80\xa8", "\"\\u2028\""},
                {"\xef\xbb\xbf", "\"\\ufeff\""},
                {"\xee\x80\x80", "\"\\ue000\""},
                {"\xf4\x8f\xbf\xbf", "\"\\U0010ffff\""},
                /* The replacement character itself is printable. */
                {"\xef\xbf\xbd", "\"\xef\xbf\xbd\""},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(nd_text_quote(cases[i].text), cases[i].quoted);
}

static void a_null_byte_is_quoted_like_any_other([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(100);

        nd_text_add_quoted(&text, "a\0b", 3);
        assert_string_equal(nd_text_get(&text), "\"a\\x00b\"");
}

static void printable_text_is_one_line([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(100), cut = ND_TEXT(4);

        static const char hostile[] = "a\nb\x1b[2J\x7f \xc2\x9b \xff \xe2\x80\xae é \"q\\";

        nd_text_add_printable(&text, hostile, sizeof hostile - 1);
        assert_string_equal(nd_text_get(&text), "a b [2J  \xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd é \"q\\");
        nd_text_add_printable(&cut, "abc€", strlen("abc€"));
        assert_string_equal(nd_text_get(&cut), "abc");
        assert_true(cut.overflow);
}

static void only_shortest_forms_are_utf8([[maybe_unused]] void **state) {
        assert_true(nd_text_utf8_valid("", 0));
        assert_true(nd_text_utf8_valid("a\0b", 3));
        assert_true(nd_text_utf8_valid("é€😀", strlen("é€😀")));
        assert_false(nd_text_utf8_valid("\xc1\x81", 2));
        assert_false(nd_text_utf8_valid("\xe0\x80\x80", 3));
        assert_false(nd_text_utf8_valid("\xf0\x80\x80\x80", 4));
        assert_false(nd_text_utf8_valid("\xf4\x90\x80\x80", 4)); /* above U+10FFFF */
        assert_false(nd_text_utf8_valid("\xf8\x88\x80\x80\x80", 5));
        assert_false(nd_text_utf8_valid("\xe2\x82", 2)); /* truncated */
        assert_false(nd_text_utf8_valid("\x80", 1));
}

static void a_prefix_is_at_the_beginning([[maybe_unused]] void **state) {
        assert_true(nd_has_prefix("abc", "ab"));
        assert_true(nd_has_prefix("abc", ""));
        assert_false(nd_has_prefix("abc", "bc"));
        assert_false(nd_has_prefix("a", "ab"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_text_is_an_empty_string),
                cmocka_unit_test(a_text_grows_and_stays_terminated),
                cmocka_unit_test(text_above_the_ceiling_is_dropped_and_sets_overflow),
                cmocka_unit_test(exactly_the_ceiling_is_not_an_overflow),
                cmocka_unit_test(a_stolen_text_leaves_an_empty_one_with_the_same_ceiling),
                cmocka_unit_test(numbers_are_decimal_digits_and_nothing_else),
                cmocka_unit_test(a_number_above_its_ceiling_is_out_of_range),
                cmocka_unit_test(quoting_equals_gos),
                cmocka_unit_test(a_null_byte_is_quoted_like_any_other),
                cmocka_unit_test(printable_text_is_one_line),
                cmocka_unit_test(only_shortest_forms_are_utf8),
                cmocka_unit_test(a_prefix_is_at_the_beginning),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
