/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <locale.h>

#include "cli/output/width.h"

#define E_ACUTE "e\xcc\x81"  /* a letter and a combining accent */
#define NODE "\xe8\x8a\x82"  /* two columns */
#define POINT "\xe7\x82\xb9" /* two columns */

static int use_utf8([[maybe_unused]] void **state) {
        assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
        return 0;
}

static int use_c([[maybe_unused]] void **state) {
        assert_non_null(setlocale(LC_ALL, "C"));
        return 0;
}

static void wide_characters_take_two_columns_and_marks_none([[maybe_unused]] void **state) {
        assert_int_equal(cli_width_of(""), 0);
        assert_int_equal(cli_width_of("web-1"), 5);
        assert_int_equal(cli_width_of(NODE POINT), 4);
        assert_int_equal(cli_width_of("caf" E_ACUTE), 4);
        assert_int_equal(cli_width_of("ab\n" NODE POINT "\nx"), 4);
}

static void text_that_could_change_the_screen_becomes_question_marks([[maybe_unused]] void **state) {
        static const struct {
                const char *given, *clean;
        } cases[] = {
                {"web-1", "web-1"},
                {"a\tb", "a b"},
                {"\033[31mred\r\n", "?[31mred??"},
                {"\xc2\x9b"
                 "2J",
                 "?2J"}, /* a C1 control */
                {"\xe2\x80\xae"
                 "txt.exe",
                 "?txt.exe"}, /* right-to-left override */
                {"we\xe2\x80\x8b"
                 "b",
                 "we?b"},            /* a zero-width space */
                {"\xcc\x81x", "?x"}, /* a mark without a character */
                {"\xff\xc3", "??"},  /* not UTF-8 */
                {"caf" E_ACUTE " " NODE, "caf" E_ACUTE " " NODE},
                /* more marks than a character may have */
                {"e\xcc\x81\xcc\x81\xcc\x81\xcc\x81", "e\xcc\x81\xcc\x81\xcc\x81?"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(cli_width_clean(cases[i].given, false), cases[i].clean);
        expect_text(cli_width_clean("one\ntwo\033", true), "one\ntwo?");
}

static void other_encodings_get_ascii([[maybe_unused]] void **state) {
        expect_text(cli_width_clean("caf\xc3\xa9 " NODE, false), "caf? ?");
        expect_text(cli_width_shorten("a-very-long-name", 9), "a-v...ame");
}

static void a_shortened_name_keeps_both_ends([[maybe_unused]] void **state) {
        static const struct {
                const char *given;
                size_t columns;
                const char *shortened;
        } cases[] = {
                {"web", 3, "web"},
                {"frontend-7d9f8b-x2k9p", 11, "front…x2k9p"},
                {"frontend-7d9f8b-x2k9p", 12, "fronte…x2k9p"},
                {"frontend", 3, "f…d"},
                {"frontend", 2, "fr"}, /* no room for the ellipsis */
                {"frontend", 0, ""},
                {NODE POINT NODE POINT, 6, NODE "…" POINT},
                {NODE POINT NODE POINT, 7, NODE "…" POINT}, /* half of a character is not shown */
                {"abcdefgh" E_ACUTE, 5, "ab…h" E_ACUTE},
                {"a" E_ACUTE E_ACUTE E_ACUTE E_ACUTE "z", 4, "a" E_ACUTE "…z"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(cli_width_shorten(cases[i].given, cases[i].columns), cases[i].shortened);
}

static void sentences_are_wrapped_between_words([[maybe_unused]] void **state) {
        static const struct {
                const char *given;
                size_t columns;
                const char *wrapped;
        } cases[] = {
                {"", 5, ""},
                {"one two", 7, "one two"},
                {"one two three", 7, "one two\nthree"},
                {"one  two", 4, "one\ntwo"},
                {"/a/long/path is", 6, "/a/lon\ng/path\nis"},
                {"found\n-> do this", 8, "found\n-> do\nthis"},
                {NODE POINT " x", 3, NODE "\n" POINT "\nx"},
                {NODE, 1, NODE}, /* nothing fits, and it ends nevertheless */
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_text(cli_width_wrap(cases[i].given, cases[i].columns), cases[i].wrapped);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(wide_characters_take_two_columns_and_marks_none, use_utf8),
                cmocka_unit_test_setup(text_that_could_change_the_screen_becomes_question_marks, use_utf8),
                cmocka_unit_test_setup(other_encodings_get_ascii, use_c),
                cmocka_unit_test_setup(a_shortened_name_keeps_both_ends, use_utf8),
                cmocka_unit_test_setup(sentences_are_wrapped_between_words, use_utf8),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
