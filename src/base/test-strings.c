/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/strings.h"

static void a_list_owns_copies([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings strings = {};
        char text[] = "first";

        nd_strings_add(&strings, text);
        text[0] = 'x';
        nd_strings_add_owned(&strings, nd_strdup("second"));
        nd_strings_addf(&strings, "%s-%d", "third", 3);

        assert_int_equal(strings.count, 3);
        assert_string_equal(strings.items[0], "first");
        assert_string_equal(strings.items[1], "second");
        assert_string_equal(strings.items[2], "third-3");
}

static void a_list_finds_whole_strings_only([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings strings = {};

        assert_false(nd_strings_have(&strings, ""));
        nd_strings_add(&strings, "abc");
        assert_true(nd_strings_have(&strings, "abc"));
        assert_false(nd_strings_have(&strings, "ab"));
        assert_false(nd_strings_have(&strings, "abcd"));
}

static void a_list_does_not_grow_past_its_ceiling([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings strings = {};

        assert_false(nd_strings_add_within(&strings, 0, "a"));
        assert_true(nd_strings_add_within(&strings, 2, "a"));
        assert_true(nd_strings_add_within(&strings, 2, "b"));
        assert_false(nd_strings_add_within(&strings, 2, "c"));
        assert_int_equal(strings.count, 2);
}

static void sorting_is_by_bytes_and_takes_an_empty_list([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings strings = {};

        nd_strings_sort(&strings);
        nd_strings_add(&strings, "b");
        nd_strings_add(&strings, "\xc3\xa4");
        nd_strings_add(&strings, "B");
        nd_strings_add(&strings, "");
        nd_strings_sort(&strings);
        assert_string_equal(strings.items[0], "");
        assert_string_equal(strings.items[1], "B");
        assert_string_equal(strings.items[2], "b");
        assert_string_equal(strings.items[3], "\xc3\xa4");
}

static void a_list_can_be_used_again_after_done([[maybe_unused]] void **state) {
        struct nd_strings strings = {};

        nd_strings_add(&strings, "a");
        nd_strings_done(&strings);
        assert_int_equal(strings.count, 0);
        assert_null(strings.items);
        nd_strings_add(&strings, "b");
        assert_string_equal(strings.items[0], "b");
        nd_strings_done(&strings);
        nd_strings_done(&strings);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_list_owns_copies),
                cmocka_unit_test(a_list_finds_whole_strings_only),
                cmocka_unit_test(a_list_does_not_grow_past_its_ceiling),
                cmocka_unit_test(sorting_is_by_bytes_and_takes_an_empty_list),
                cmocka_unit_test(a_list_can_be_used_again_after_done),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
