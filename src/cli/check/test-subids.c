/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/check/subids.h"

static const struct nd_userns_range everything = {.first = 65536, .count = UINT32_MAX - 65535},
                                    some = {.first = 655360000, .count = 7208960};

static void the_first_user_of_debian_overlaps_the_default_range([[maybe_unused]] void **state) {
        struct cli_subids_overlap found = {};

        assert_true(cli_subids_find_overlap("alice:100000:65536\n", everything, &found));
        assert_string_equal(found.user, "alice");
        assert_int_equal(found.first, 100000);
        assert_int_equal(found.last, 165535);
        assert_false(cli_subids_find_overlap("alice:100000:65536\n", some, &found));
}

static void ranges_that_only_touch_do_not_overlap([[maybe_unused]] void **state) {
        struct cli_subids_overlap found = {};

        assert_false(cli_subids_find_overlap("a:655359999:1\nb:662568960:65536\n", some, &found));
        assert_true(cli_subids_find_overlap("a:655359999:1\nb:662568959:1\n", some, &found));
        assert_string_equal(found.user, "b");
        assert_true(cli_subids_find_overlap("a:655359999:2\n", some, &found));
        assert_true(cli_subids_find_overlap("a:1:4294967295\n", some, &found));
}

static void node_users_and_invalid_lines_are_skipped([[maybe_unused]] void **state) {
        struct cli_subids_overlap found = {};

        assert_false(cli_subids_find_overlap("", everything, &found));
        assert_false(
                cli_subids_find_overlap("kubelet:655360000:7208960\nroot:655360000:65536\n0:655360000:65536\n", some, &found));
        assert_false(cli_subids_find_overlap(
                "\n:::\n:100000:65536\na\na:1\na:x:65536\na:100000:-1\na:100000:0\na:99999999999:1\n", everything, &found));
        assert_true(cli_subids_find_overlap("nonsense\nlast:100000:65536", everything, &found));
        assert_string_equal(found.user, "last");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_user_of_debian_overlaps_the_default_range),
                cmocka_unit_test(ranges_that_only_touch_do_not_overlap),
                cmocka_unit_test(node_users_and_invalid_lines_are_skipped),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
