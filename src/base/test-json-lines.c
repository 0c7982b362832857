/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/json-lines.h"

static size_t line_at(const char *json, const char *pointer, bool key) {
        nd_cleanup(nd_json_lines_done) struct nd_json_lines lines = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *value;

        expect_ok(nd_json_parse(json, strlen(json), 1 << 20, &doc));
        nd_json_lines_scan(json, strlen(json), &lines);
        assert_int_equal(lines.lines.count, yyjson_doc_get_val_count(doc));
        value = yyjson_doc_ptr_get(doc, pointer);
        assert_non_null(value);
        return nd_json_lines_of(&lines, doc, key ? value - 1 : value);
}

static void every_value_and_key_has_the_line_of_its_text([[maybe_unused]] void **state) {
        static const char json[] = "{\n\"a\": [1,\n -2.5e3, true,\nnull],\n\"b\\\"\\\\\": {\"c\":\n\"x]\\n\"}, \"d\"\n:\n{}}";

        assert_int_equal(line_at(json, "", false), 1);
        assert_int_equal(line_at(json, "/a", true), 2);
        assert_int_equal(line_at(json, "/a", false), 2);
        assert_int_equal(line_at(json, "/a/0", false), 2);
        assert_int_equal(line_at(json, "/a/1", false), 3);
        assert_int_equal(line_at(json, "/a/2", false), 3);
        assert_int_equal(line_at(json, "/a/3", false), 4);
        assert_int_equal(line_at(json, "/b\"\\/c", true), 5);
        assert_int_equal(line_at(json, "/b\"\\/c", false), 6);
        assert_int_equal(line_at(json, "/d", true), 6);
        assert_int_equal(line_at(json, "/d", false), 8);
        assert_int_equal(line_at("\n 7 ", "", false), 2);
}

static void without_lines_the_answer_is_zero([[maybe_unused]] void **state) {
        const struct nd_json_lines none = {};
        nd_autojson yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse("[1]", 3, 100, &doc));
        assert_int_equal(nd_json_lines_of(&none, doc, yyjson_doc_get_root(doc)), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_value_and_key_has_the_line_of_its_text),
                cmocka_unit_test(without_lines_the_answer_is_zero),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
