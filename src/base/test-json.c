/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/json.h"

static struct nd_error *parse(const char *text, yyjson_doc **ret) {
        return nd_json_parse(text, strlen(text), 1 << 20, ret);
}

static void strict_json_is_read([[maybe_unused]] void **state) {
        nd_autojson yyjson_doc *doc = nullptr;

        expect_ok(parse(" {\"a\": [1, null, true, \"x\"]}\n", &doc));
        assert_int_equal(yyjson_arr_size(yyjson_obj_get(yyjson_doc_get_root(doc), "a")), 4);
}

static void invalid_json_is_refused_with_its_place([[maybe_unused]] void **state) {
        static const char *const wrong[] = {"",    "{",       "{\"a\":1,}", "[1 2]",    "{a:1}",      "'x'",
                                            "NaN", "// x\n1", "1 2",        "\"\xff\"", "\"\\ud800\""};
        yyjson_doc *doc = nullptr;

        for (size_t i = 0; i < nd_count_of(wrong); i++)
                expect_error(parse(wrong[i], &doc), ND_INVALID, "");
        assert_null(doc);
        expect_error(parse("{\n  \"a\": x\n}", &doc), ND_INVALID, "at line 2, column 8");
}

static void more_bytes_than_the_ceiling_are_refused([[maybe_unused]] void **state) {
        yyjson_doc *doc = nullptr;

        expect_error(nd_json_parse("[1,2]", 5, 4, &doc), ND_INVALID, "5 bytes of JSON, at most 4 are read");
        expect_ok(nd_json_parse("[1,2]", 5, 5, &doc));
        nd_json_doc_done(&doc);
}

static char *nested(size_t depth) {
        char *text = nd_calloc(2 * depth + 1, 1);

        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        return text;
}

static void nesting_has_a_ceiling_and_strings_do_not_count([[maybe_unused]] void **state) {
        nd_autofree char *fits = nested(ND_JSON_DEPTH), *deep = nested(ND_JSON_DEPTH + 1),
                         *quoted = nd_format("\"\\\"%s\"", deep);
        nd_autojson yyjson_doc *a = nullptr;
        nd_autojson yyjson_doc *b = nullptr;

        expect_ok(parse(fits, &a));
        expect_ok(parse(quoted, &b));
        expect_error(parse(deep, &b), ND_INVALID, "nested deeper than 64");
}

static void the_writer_sets_commas_blanks_and_indentation([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1000);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "a", "x");
        nd_json_open(&out, "b", '[');
        nd_json_number(&out, nullptr, UINT64_MAX);
        nd_json_bool(&out, nullptr, false);
        nd_json_close(&out, ']');
        nd_json_open(&out, "c", '{');
        nd_json_close(&out, '}');
        nd_json_string(&out, "d", nullptr);
        nd_json_close(&out, '}');
        assert_string_equal(nd_text_get(&text), "{\n  \"a\": \"x\",\n  \"b\": [\n    18446744073709551615,\n    false\n  ],\n"
                                                "  \"c\": {},\n  \"d\": null\n}");
}

static void without_indentation_it_is_one_line([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1000);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '[');
        nd_json_bool(&out, nullptr, true);
        nd_json_open(&out, nullptr, '[');
        nd_json_close(&out, ']');
        nd_json_number(&out, nullptr, 0);
        nd_json_close(&out, ']');
        assert_string_equal(nd_text_get(&text), "[true, [], 0]");
}

static void written_strings_parse_back_unchanged_or_as_valid_utf8([[maybe_unused]] void **state) {
        static const struct {
                const char *written;
                const char *read;
        } cases[] = {{"\xc2\x9b"
                      "2J\xe2\x80\xae",
                      "\xc2\x9b"
                      "2J\xe2\x80\xae"},
                     {"a\"b\\c/\b\n\x01\x7f", "a\"b\\c/\b\n\x01\x7f"},
                     {"é€😀", "é€😀"},
                     {"a\xff", "a\xef\xbf\xbd"},
                     {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
                     {"\xc3(", "\xef\xbf\xbd("}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autotext struct nd_text text = ND_TEXT(1000);
                struct nd_json_out out = {.text = &text};
                nd_autojson yyjson_doc *doc = nullptr;

                nd_json_string(&out, nullptr, cases[i].written);
                expect_ok(parse(nd_text_get(&text), &doc));
                assert_string_equal(yyjson_get_str(yyjson_doc_get_root(doc)), cases[i].read);
        }
}

static void characters_that_a_terminal_acts_upon_are_escaped([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1000);
        struct nd_json_out out = {.text = &text};

        /* ESC, DEL, CSI as one character, an override, an isolate's end, an Arabic letter mark; a
         * joiner and an ellipsis stay. */
        nd_json_string(&out, nullptr,
                       "\x1b\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa9\xd8\x9c"
                       "\xe2\x80\x8d\xe2\x80\xa6");
        assert_string_equal(nd_text_get(&text), "\"\\u001b\\u007f\\u009b\\u202e\\u2069\\u061c"
                                                "\xe2\x80\x8d\xe2\x80\xa6\"");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(strict_json_is_read),
                cmocka_unit_test(invalid_json_is_refused_with_its_place),
                cmocka_unit_test(more_bytes_than_the_ceiling_are_refused),
                cmocka_unit_test(nesting_has_a_ceiling_and_strings_do_not_count),
                cmocka_unit_test(the_writer_sets_commas_blanks_and_indentation),
                cmocka_unit_test(without_indentation_it_is_one_line),
                cmocka_unit_test(written_strings_parse_back_unchanged_or_as_valid_utf8),
                cmocka_unit_test(characters_that_a_terminal_acts_upon_are_escaped),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
