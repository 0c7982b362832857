/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/selector.h"

#include <unit/expect.h>

/* 1: matches, 0: does not match, -1: invalid. */
static int ask(const char *selector_json, const char *value_of_a) {
        nd_autoarena struct nd_arena arena = {};
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_selector selector = {};
        struct nd_shape_pair pair = {.key = "a", .value = value_of_a};
        struct nd_shape_pairs labels = {.items = &pair, .count = value_of_a ? 1 : 0};
        nd_autoerror struct nd_error *invalid = nullptr;

        expect_ok(nd_json_parse(selector_json, strlen(selector_json), 10000, &doc));
        expect_ok(nd_shape_decode(&nd_selector_shape, yyjson_doc_get_root(doc), &arena, &selector));
        invalid = nd_selector_validate(&selector);
        if (invalid)
                assert_false(nd_selector_matches(&selector, &labels));
        return invalid ? -1 : nd_selector_matches(&selector, &labels);
}

#define TERM(operator, values)                                                                                                \
        "{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"" operator"\", \"values\": " values "}]}"

static void each_operator_matches_as_in_kubernetes([[maybe_unused]] void **state) {
        assert_int_equal(ask("{}", nullptr), 1);
        assert_int_equal(ask("{\"matchLabels\": {\"a\": \"1\"}}", "1"), 1);
        assert_int_equal(ask("{\"matchLabels\": {\"a\": \"1\"}}", "2"), 0);
        assert_int_equal(ask("{\"matchLabels\": {\"a\": \"\"}}", nullptr), 0);
        assert_int_equal(ask(TERM("In", "[\"1\", \"2\"]"), "2"), 1);
        assert_int_equal(ask(TERM("In", "[\"1\"]"), nullptr), 0);
        assert_int_equal(ask(TERM("NotIn", "[\"1\"]"), "1"), 0);
        assert_int_equal(ask(TERM("NotIn", "[\"1\"]"), nullptr), 1);
        assert_int_equal(ask(TERM("Exists", "[]"), ""), 1);
        assert_int_equal(ask(TERM("Exists", "null"), nullptr), 0);
        assert_int_equal(ask(TERM("DoesNotExist", "[]"), ""), 0);
        assert_int_equal(ask(TERM("DoesNotExist", "[]"), nullptr), 1);
}

static void invalid_selectors_match_nothing([[maybe_unused]] void **state) {
        assert_int_equal(ask(TERM("in", "[\"1\"]"), "1"), -1);
        assert_int_equal(ask(TERM("In", "[]"), "1"), -1);
        assert_int_equal(ask(TERM("Exists", "[\"1\"]"), "1"), -1);
        assert_int_equal(ask(TERM("In", "[\"-\"]"), "1"), -1);
        assert_int_equal(ask("{\"matchLabels\": {\"a b\": \"1\"}}", "1"), -1);
        assert_int_equal(ask("{\"matchLabels\": {\"a\": \"a b\"}}", "1"), -1);
        assert_false(nd_selector_matches(nullptr, &(struct nd_shape_pairs) {}));
}

static void keys_have_a_name_and_an_optional_prefix([[maybe_unused]] void **state) {
        static const char *const good[] = {"a", "A.b_c-9", "example.com/a", "a-b.c/D"};
        static const char *const bad[] = {"",       "-a",     "a-",     "/a",   "a/",    "a/b/c", "Example.com/a",
                                          "a..b/c", "-a.b/c", "a-.b/c", ".a/c", "\u00e9"};

        for (size_t i = 0; i < nd_count_of(good); i++)
                assert_true(nd_kube_label_key_is_valid(good[i]));
        for (size_t i = 0; i < nd_count_of(bad); i++)
                assert_false(nd_kube_label_key_is_valid(bad[i]));
        assert_true(nd_kube_label_value_is_valid(""));
        assert_false(nd_kube_label_value_is_valid("."));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_operator_matches_as_in_kubernetes),
                cmocka_unit_test(invalid_selectors_match_nothing),
                cmocka_unit_test(keys_have_a_name_and_an_optional_prefix),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
