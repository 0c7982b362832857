/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/template.h"

#include <unit/expect.h>

static const struct guard_template_value values[] = {
        {.name = "name", .value = "a \"b\""}, {.name = "unset"},
        {.name = "on", .value = ""},          {.name = "port", .value = "443", .is_number = true},
        {.name = "list", .value = "x,,y"},    {},
};

static void expect_json(const char *template, const char *json) {
        nd_autotext struct nd_text text = ND_TEXT(4096);

        guard_template_write(template, values, &text);
        assert_string_equal(nd_text_get(&text), json);
}

static void placeholders_are_replaced_and_quoted([[maybe_unused]] void **state) {
        expect_json("{k: \"-${name}-${on}\", n: 5, b: true}\n",
                    "{\n  \"k\": \"-a \\\"b\\\"-\",\n  \"n\": 5,\n  \"b\": true\n}\n");
        expect_json("{k: \"${port}\"}\n", "{\n  \"k\": 443\n}\n");
}

static void members_and_items_without_a_value_are_left_out([[maybe_unused]] void **state) {
        expect_json("{a: \"${unset}/x\", l: [\"${unset}\", z], e: [\"${unset}\"]}\n",
                    "{\n  \"l\": [\n    \"z\"\n  ],\n  \"e\": []\n}\n");
}

static void conditions_leave_objects_out([[maybe_unused]] void **state) {
        expect_json("a: {$if: unset, x: 1}\nb: {$if: on, x: 1}\nc: {$unless: on, x: 1}\nd: [{$unless: unset, x: 1}]\n",
                    "{\n  \"b\": {\n    \"x\": 1\n  },\n  \"d\": [\n    {\n      \"x\": 1\n    }\n  ]\n}\n");
}

static void objects_are_repeated_for_each_item([[maybe_unused]] void **state) {
        expect_json("l: [{$each: list, v: \"${item}\"}, {$each: unset, v: 1}]\n",
                    "{\n  \"l\": [\n    {\n      \"v\": \"x\"\n    },\n    {\n      \"v\": \"y\"\n    }\n  ]\n}\n");
}

static void documents_are_separated_and_may_be_left_out([[maybe_unused]] void **state) {
        expect_json("{a: 1}\n---\n{$if: unset, b: 2}\n---\n{c: 3}\n", "{\n  \"a\": 1\n}\n\n---\n{\n  \"c\": 3\n}\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(placeholders_are_replaced_and_quoted),
                cmocka_unit_test(members_and_items_without_a_value_are_left_out),
                cmocka_unit_test(conditions_leave_objects_out),
                cmocka_unit_test(objects_are_repeated_for_each_item),
                cmocka_unit_test(documents_are_separated_and_may_be_left_out),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
