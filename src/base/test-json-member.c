/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/json-member.h"

static const char document[] =
        "{\"text\": \"abc\", \"nothing\": null, \"zero\": \"a\\u0000b\", \"number\": 7, \"less\": -1, \"yes\": true,"
        " \"object\": {\"a\": 1}, \"list\": [\"x\", \"yy\"], \"mixed\": [\"x\", 1], \"twice\": 1, \"twice\": 2}";

static yyjson_doc *parse(void) {
        yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse(document, sizeof document - 1, 4096, &doc));
        return doc;
}

static void members_are_read_by_their_type([[maybe_unused]] void **state) {
        nd_autojson yyjson_doc *doc = parse();
        yyjson_val *root = yyjson_doc_get_root(doc), *value = nullptr;
        const char *text = nullptr;
        uint64_t number = 0;
        bool yes = false;

        expect_ok(nd_json_member_text(root, "text", 3, &text));
        assert_string_equal(text, "abc");
        expect_ok(nd_json_member_number(root, "number", 7, &number));
        assert_int_equal(number, 7);
        expect_ok(nd_json_member_bool(root, "yes", &yes));
        assert_true(yes);
        expect_ok(nd_json_member_object(root, "object", &value));
        assert_true(yyjson_is_obj(value));
        expect_ok(nd_json_member_array(root, "list", 2, &value));
        assert_int_equal(yyjson_arr_size(value), 2);
}

static void an_absent_member_and_a_null_are_empty([[maybe_unused]] void **state) {
        nd_autojson yyjson_doc *doc = parse();
        yyjson_val *root = yyjson_doc_get_root(doc), *value = root;
        nd_cleanup(nd_strings_done) struct nd_strings strings = {};
        const char *text = "before";
        uint64_t number = 1;
        bool yes = true;

        expect_ok(nd_json_member_text(root, "absent", 3, &text));
        assert_null(text);
        expect_ok(nd_json_member_text(root, "nothing", 3, &text));
        assert_null(text);
        expect_ok(nd_json_member_number(root, "nothing", 3, &number));
        assert_int_equal(number, 0);
        expect_ok(nd_json_member_bool(root, "absent", &yes));
        assert_false(yes);
        expect_ok(nd_json_member_object(root, "nothing", &value));
        assert_null(value);
        expect_ok(nd_json_member_strings(root, "nothing", 1, 1, &strings));
        assert_int_equal(strings.count, 0);
}

static void wrong_members_are_errors([[maybe_unused]] void **state) {
        nd_autojson yyjson_doc *doc = parse();
        yyjson_val *root = yyjson_doc_get_root(doc), *value;
        const char *text;
        uint64_t number;
        bool yes;

        expect_error(nd_json_member_text(root, "text", 2, &text), ND_INVALID, "'text' is longer than 2 bytes");
        expect_error(nd_json_member_text(root, "zero", 9, &text), ND_INVALID, "'zero' has a null byte in it");
        expect_error(nd_json_member_text(root, "number", 9, &text), ND_INVALID, "'number' is uint, not a string");
        expect_error(nd_json_member_number(root, "number", 6, &number), ND_INVALID, "'number' is larger than 6");
        expect_error(nd_json_member_number(root, "less", 6, &number), ND_INVALID, "'less' is negative");
        expect_error(nd_json_member_number(root, "twice", 6, &number), ND_INVALID, "'twice' is given twice");
        expect_error(nd_json_member_bool(root, "text", &yes), ND_INVALID, "'text' is string, not true or false");
        expect_error(nd_json_member_object(root, "list", &value), ND_INVALID, "'list' is array, not an object");
        expect_error(nd_json_member_array(root, "list", 1, &value), ND_INVALID, "'list' has 2 entries, at most 1 are taken");
}

static void a_list_of_strings_is_whole_or_an_error([[maybe_unused]] void **state) {
        nd_autojson yyjson_doc *doc = parse();
        yyjson_val *root = yyjson_doc_get_root(doc);
        nd_cleanup(nd_strings_done) struct nd_strings strings = {};

        expect_error(nd_json_member_strings(root, "list", 2, 1, &strings), ND_INVALID, "longer than 1 bytes");
        expect_error(nd_json_member_strings(root, "mixed", 2, 2, &strings), ND_INVALID, "'mixed' is uint, not a string");
        assert_int_equal(strings.count, 0);
        expect_ok(nd_json_member_strings(root, "list", 2, 2, &strings));
        assert_int_equal(strings.count, 2);
        assert_string_equal(strings.items[1], "yy");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(members_are_read_by_their_type),
                cmocka_unit_test(an_absent_member_and_a_null_are_empty),
                cmocka_unit_test(wrong_members_are_errors),
                cmocka_unit_test(a_list_of_strings_is_whole_or_an_error),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
