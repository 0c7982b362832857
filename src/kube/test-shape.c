/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/shape.h"

#include <unit/expect.h>

struct leaf {
        const char *name;
        struct nd_shape_int number;
};

struct tree {
        const char *text;
        bool flag;
        enum nd_shape_switch maybe;
        struct nd_shape_int wide;
        struct nd_shape_int narrow;
        uint64_t present;
        struct leaf inside;
        struct leaf *pointer;
        nd_list(struct leaf) leaves;
        struct nd_shape_texts texts;
        struct nd_shape_ints ints;
        struct nd_shape_pairs pairs;
        struct leaf *again;
};

static const struct nd_shape_field leaf_fields[] = {
        {.name = "name", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct leaf, name)},
        {.name = "number", .kind = ND_SHAPE_INT, .offset = offsetof(struct leaf, number)},
        {},
};
static const struct nd_shape leaf_shape = {.size = sizeof(struct leaf), .fields = leaf_fields};

static const struct nd_shape_field tree_fields[] = {
        {.name = "text", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct tree, text)},
        {.name = "flag", .kind = ND_SHAPE_BOOL, .offset = offsetof(struct tree, flag)},
        {.name = "maybe", .kind = ND_SHAPE_SWITCH, .offset = offsetof(struct tree, maybe)},
        {.name = "wide", .kind = ND_SHAPE_INT, .offset = offsetof(struct tree, wide)},
        {.name = "narrow", .kind = ND_SHAPE_INT32, .offset = offsetof(struct tree, narrow)},
        {.name = "first", .kind = ND_SHAPE_PRESENT, .offset = offsetof(struct tree, present), .bit = 3},
        {.name = "second", .kind = ND_SHAPE_PRESENT, .offset = offsetof(struct tree, present), .bit = 40},
        {.name = "inside", .kind = ND_SHAPE_INLINE, .offset = offsetof(struct tree, inside), .of = &leaf_shape},
        {.name = "pointer", .kind = ND_SHAPE_OBJECT, .offset = offsetof(struct tree, pointer), .of = &leaf_shape},
        {.name = "leaves", .kind = ND_SHAPE_LIST, .offset = offsetof(struct tree, leaves), .of = &leaf_shape},
        {.name = "texts", .kind = ND_SHAPE_TEXTS, .offset = offsetof(struct tree, texts)},
        {.name = "ints", .kind = ND_SHAPE_INTS, .offset = offsetof(struct tree, ints)},
        {.name = "pairs", .kind = ND_SHAPE_PAIRS, .offset = offsetof(struct tree, pairs)},
        {.name = "second", .kind = ND_SHAPE_OBJECT, .offset = offsetof(struct tree, again), .of = &leaf_shape},
        {},
};
static const struct nd_shape tree_shape = {.size = sizeof(struct tree), .fields = tree_fields};

static struct nd_error *decode(const char *json, struct nd_arena *arena, struct tree *ret) {
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_json_parse(json, strlen(json), 1 << 20, &doc));
        *ret = (struct tree) {};
        return nd_shape_decode(&tree_shape, yyjson_doc_get_root(doc), arena, ret);
}

static void every_kind_of_field_is_decoded([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct tree t;

        expect_ok(decode(
                "{\"text\": \"x\", \"flag\": true, \"maybe\": false, \"wide\": -9223372036854775808, \"narrow\": 7,"
                " \"first\": {}, \"second\": {\"name\": \"s\"}, \"inside\": {\"name\": \"i\"}, \"pointer\": {\"number\": 5},"
                " \"leaves\": [{\"name\": \"a\"}, null, {\"name\": \"b\"}], \"texts\": [\"p\", null], \"ints\": [3, null],"
                " \"pairs\": {\"z\": \"1\", \"a\": \"2\", \"n\": null}, \"unknown\": [1, {}]}",
                &arena, &t));
        assert_string_equal(t.text, "x");
        assert_true(t.flag);
        assert_int_equal(t.maybe, ND_OFF);
        assert_true(t.wide.set && t.wide.value == INT64_MIN);
        assert_int_equal(t.narrow.value, 7);
        assert_int_equal(t.present, UINT64_C(1) << 3 | UINT64_C(1) << 40);
        assert_string_equal(t.again->name, "s"); /* one value, two uses */
        assert_string_equal(t.inside.name, "i");
        assert_int_equal(t.pointer->number.value, 5);
        assert_int_equal(t.leaves.count, 3);
        assert_null(t.leaves.items[1].name);
        assert_string_equal(t.leaves.items[2].name, "b");
        assert_string_equal(t.texts.items[1], "");
        assert_int_equal(t.ints.items[0], 3);
        assert_string_equal(nd_shape_pairs_get(&t.pairs, "a"), "2");
        assert_string_equal(nd_shape_pairs_get(&t.pairs, "n"), "");
        assert_null(nd_shape_pairs_get(&t.pairs, "b"));
        assert_true(nd_shape_texts_have(&t.texts, "p"));
}

static void null_is_absence([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct tree t;

        expect_ok(
                decode("{\"text\": null, \"flag\": null, \"maybe\": null, \"wide\": null, \"first\": null, \"pointer\": null,"
                       " \"leaves\": null, \"texts\": null, \"pairs\": null, \"inside\": null}",
                       &arena, &t));
        assert_null(t.text);
        assert_int_equal(t.maybe, ND_UNSET);
        assert_false(t.wide.set);
        assert_int_equal(t.present, 0);
        assert_null(t.pointer);
        assert_null(t.leaves.items);
        assert_null(t.texts.items);
        expect_ok(decode("null", &arena, &t));
        expect_ok(decode("{\"texts\": []}", &arena, &t));
        assert_non_null(t.texts.items); /* an empty list differs from none */
}

static void errors_name_the_path([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct tree t;

        expect_error_text(decode("{\"leaves\": [{}, {\"number\": \"x\"}]}", &arena, &t),
                          "leaves[1].number: a whole number is expected, not string");
        expect_error_text(decode("{\"inside\": {\"name\": 3}}", &arena, &t), "inside.name: text is expected, not uint");
        expect_error_text(decode("[]", &arena, &t), "an object is expected, not array");
        expect_error_text(decode("{\"pairs\": {\"k\": 1}}", &arena, &t), "pairs.k: text is expected, not uint");
        expect_error_text(decode("{\"flag\": \"yes\"}", &arena, &t), "flag: true or false is expected, not string");
        expect_error_text(decode("{\"ints\": [1, 1.5]}", &arena, &t), "ints[1]: a whole number is expected, not real");
        expect_error_text(decode("{\"first\": []}", &arena, &t), "first: an object is expected, not array");
        expect_error_text(decode("{\"texts\": {}}", &arena, &t), "texts: a list is expected, not object");
}

static void numbers_are_checked_for_range([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct tree t;

        expect_ok(decode("{\"narrow\": 2147483647, \"wide\": 9223372036854775807}", &arena, &t));
        expect_ok(decode("{\"narrow\": -2147483648}", &arena, &t));
        expect_error_text(decode("{\"narrow\": 2147483648}", &arena, &t), "narrow: the number is too large");
        expect_error_text(decode("{\"narrow\": -2147483649}", &arena, &t), "narrow: the number is too small");
        expect_error_text(decode("{\"wide\": 9223372036854775808}", &arena, &t), "wide: the number is too large");
}

static void ambiguous_input_is_rejected([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        struct tree t;

        expect_error_text(decode("{\"flag\": false, \"flag\": true}", &arena, &t), "flag: duplicate field");
        expect_error_text(decode("{\"pairs\": {\"a\": \"1\", \"b\": \"\", \"a\": \"2\"}}", &arena, &t),
                          "pairs.a: duplicate field");
        expect_error_text(decode("{\"second\": {}, \"second\": null}", &arena, &t), "second: duplicate field");
        expect_error_text(decode("{\"text\": \"Default\\u0000x\"}", &arena, &t), "text: the text contains a null byte");
        expect_error_text(decode("{\"pairs\": {\"a\\u0000\": \"\"}}", &arena, &t), "pairs: the text contains a null byte");
        expect_ok(decode("{\"flag\\u0000\": 7}", &arena, &t)); /* a different field */
        assert_false(t.flag);
}

static void lists_of_texts_are_equal_in_the_same_order_only([[maybe_unused]] void **state) {
        const char *ab[] = {"a", "b"}, *ba[] = {"b", "a"};
        const struct nd_shape_texts none = {}, empty = {.items = ab}, one = {ab, 1}, both = {ab, 2}, swapped = {ba, 2};

        assert_true(nd_shape_texts_equal(&none, &empty));
        assert_true(nd_shape_texts_equal(&both, &(struct nd_shape_texts) {(const char *[]) {"a", "b"}, 2}));
        assert_false(nd_shape_texts_equal(&none, &one));
        assert_false(nd_shape_texts_equal(&one, &both));
        assert_false(nd_shape_texts_equal(&both, &swapped));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_kind_of_field_is_decoded),
                cmocka_unit_test(null_is_absence),
                cmocka_unit_test(errors_name_the_path),
                cmocka_unit_test(numbers_are_checked_for_range),
                cmocka_unit_test(ambiguous_input_is_rejected),
                cmocka_unit_test(lists_of_texts_are_equal_in_the_same_order_only),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
