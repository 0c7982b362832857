/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/distance.h"

static unsigned distance(const char *word, const char *name, bool ignore_case) {
        unsigned row[ND_DISTANCE_MOST + 1];

        nd_distance(word, strlen(word), name, strlen(name), ignore_case, row);
        return row[strlen(name)];
}

static void each_mistake_counts_once([[maybe_unused]] void **state) {
        assert_int_equal(distance("containers", "containers", false), 0);
        assert_int_equal(distance("container", "containers", false), 1);
        assert_int_equal(distance("containerss", "containers", false), 1);
        assert_int_equal(distance("contayners", "containers", false), 1);
        assert_int_equal(distance("contianers", "containers", false), 1);
        assert_int_equal(distance("", "abc", false), 3);
        assert_int_equal(distance("abc", "", false), 3);
}

static void case_counts_unless_it_is_ignored([[maybe_unused]] void **state) {
        assert_int_equal(distance("hostpid", "hostPID", false), 3);
        assert_int_equal(distance("hostpid", "hostPID", true), 0);
        assert_int_equal(distance("hostipD", "hostPID", true), 1);
}

static void the_beginnings_of_a_name_are_compared_too([[maybe_unused]] void **state) {
        unsigned row[ND_DISTANCE_MOST + 1];

        nd_distance("web", 3, "web-7d4b", 8, false, row);
        assert_int_equal(row[3], 0);
        assert_int_equal(row[8], 5);
        assert_int_equal(row[0], 3);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_mistake_counts_once),
                cmocka_unit_test(case_counts_unless_it_is_ignored),
                cmocka_unit_test(the_beginnings_of_a_name_are_compared_too),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
