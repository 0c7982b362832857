/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/field.h"

#include <unit/expect.h>

static void errors_are_formatted_as_in_the_api_server([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        nd_autotext struct nd_text text = ND_TEXT(1000);

        nd_field_add(&errors, ND_FIELD_INVALID, nd_field_int(&arena, -3), "must be 1", "spec.a[%d].b", 2);
        nd_field_errors_print(&errors, &text);
        assert_string_equal(nd_text_get(&text), "spec.a[2].b: Invalid value: -3: must be 1");

        nd_field_add(&errors, ND_FIELD_REQUIRED, nullptr, "", "x");
        nd_field_add(&errors, ND_FIELD_FORBIDDEN, nullptr, "no", "y");
        nd_field_add(&errors, ND_FIELD_NOT_SUPPORTED, nd_field_text(&arena, "a\"b"), "supported values: \"c\"", "z");
        nd_field_add(&errors, ND_FIELD_FORBIDDEN, nullptr, "no", "y"); /* a duplicate */
        text.length = 0;
        nd_field_errors_print(&errors, &text);
        assert_string_equal(nd_text_get(&text),
                            "[spec.a[2].b: Invalid value: -3: must be 1, x: Required value, y: Forbidden: no, "
                            "z: Unsupported value: \"a\\\"b\": supported values: \"c\"]");
}

static void json_values_are_escaped_as_in_go([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};

        assert_string_equal(nd_field_json(&arena, "<a>&\"\\"), "\"\\u003ca\\u003e\\u0026\\\"\\\\\"");
        assert_string_equal(nd_field_json(&arena, "\n\t\b\f\r\x01\x0b"), "\"\\n\\t\\b\\f\\r\\u0001\\u000b\"");
        assert_string_equal(nd_field_json(&arena, "\u2028\u2029\u00e9"), "\"\\u2028\\u2029\u00e9\"");
}

static void the_number_of_errors_is_bounded([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};

        for (int i = 0; i < 5000; i++)
                nd_field_add(&errors, ND_FIELD_REQUIRED, nullptr, "", "x[%d]", i);
        assert_int_equal(errors.items.count, 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(errors_are_formatted_as_in_the_api_server),
                cmocka_unit_test(json_values_are_escaped_as_in_go),
                cmocka_unit_test(the_number_of_errors_is_bounded),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
