/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/toml.h"

#include <unit/expect.h>

#include "base/text.h"

static struct nd_error *parse(const char *text, struct pull_toml **ret) {
        return pull_toml_parse(text, strlen(text), ret);
}

static void tables_keep_the_order_of_the_file([[maybe_unused]] void **state) {
        pull_autotoml struct pull_toml *root = nullptr;
        const struct pull_toml *hosts;

        expect_ok(parse("[host.\"https://b\"]\nx = 1\n[host.\"https://a\"]\n[host.\"https://b\".header]\nk = 'v'\n", &root));
        hosts = pull_toml_get(root, "host");
        assert_int_equal(hosts->children.count, 2);
        assert_string_equal(hosts->children.items[0]->key, "https://b");
        assert_string_equal(pull_toml_get(pull_toml_get(hosts->children.items[0], "header"), "k")->text, "v");
}

static void strings_come_in_four_forms([[maybe_unused]] void **state) {
        pull_autotoml struct pull_toml *root = nullptr;

        expect_ok(parse("a = \"t\\tu\\u00e9\\\"\"\nb = 'C:\\raw'\nc = \"\"\"\nfirst\\\n   second\"\"\"\nd = '''\nit's'''\n",
                        &root));
        assert_string_equal(pull_toml_get(root, "a")->text, "t\tu\xc3\xa9\"");
        assert_string_equal(pull_toml_get(root, "b")->text, "C:\\raw");
        assert_string_equal(pull_toml_get(root, "c")->text, "firstsecond");
        assert_string_equal(pull_toml_get(root, "d")->text, "it's");
}

static void arrays_inline_tables_and_comments_are_read([[maybe_unused]] void **state) {
        pull_autotoml struct pull_toml *root = nullptr;
        const struct pull_toml *list;

        expect_ok(parse("a = [ # one\n 'x', [\"y\", 'z'],\n]\nb = { c = true, d.e = 1.5e3 }\n[[t]]\nn = 1\n[[t]]\nn = 2\n",
                        &root));
        list = pull_toml_get(root, "a");
        assert_int_equal(list->children.count, 2);
        assert_string_equal(list->children.items[1]->children.items[1]->text, "z");
        assert_true(pull_toml_get(pull_toml_get(root, "b"), "c")->truth);
        assert_string_equal(pull_toml_get(pull_toml_get(pull_toml_get(root, "b"), "d"), "e")->text, "1.5e3");
        assert_int_equal(pull_toml_get(root, "t")->children.count, 2);
}

static void errors_name_the_line([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "\na",
                "\na = ",
                "\na = 'x",
                "\n[a",
                "\na = 1\na = 2",
                "\n[a]\n[a]",
                "\na = b",
                "\na = [1 2]",
                "\na = {b = 1 c}",
                "\na = \"\\q\"",
                "\na = \"\\ud800\"",
                "\na = 1 b = 2",
                "\n= 1",
                "\na = 1\n[a]",
                "\na = \"x\ny\"",
                "\na = \"\\u0000\"",
                "\n[[a]]\n[a.b]\n[[a.b]]",
        };

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                pull_autotoml struct pull_toml *root = nullptr;

                expect_error(parse(bad[i], &root), ND_INVALID, "line ");
        }
}

static void limits_are_enforced([[maybe_unused]] void **state) {
        nd_autotext struct nd_text deep = ND_TEXT(TOML_BYTES), many = ND_TEXT(TOML_BYTES);
        pull_autotoml struct pull_toml *root = nullptr;

        nd_text_add(&deep, "a = ");
        for (int i = 0; i < 1000; i++)
                nd_text_add(&deep, "[");
        expect_error(parse(nd_text_get(&deep), &root), ND_INVALID, "deeply");
        nd_text_add(&many, "a = [");
        for (int i = 0; i < TOML_VALUES; i++)
                nd_text_add(&many, "1,");
        nd_text_add(&many, "]");
        expect_error(parse(nd_text_get(&many), &root), ND_EXHAUSTED, "values");
        expect_error(pull_toml_parse("a = '\xff'", 8, &root), ND_INVALID, "UTF-8");
        expect_error(pull_toml_parse("a = 'x\0y'", 9, &root), ND_INVALID, "null");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tables_keep_the_order_of_the_file),
                cmocka_unit_test(strings_come_in_four_forms),
                cmocka_unit_test(arrays_inline_tables_and_comments_are_read),
                cmocka_unit_test(errors_name_the_line),
                cmocka_unit_test(limits_are_enforced),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
