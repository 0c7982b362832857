/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/vector.h"

typedef nd_vector(int) numbers;

static void a_vector_keeps_its_items_while_it_grows([[maybe_unused]] void **state) {
        numbers v = {};

        for (int i = 0; i < 1000; i++)
                nd_vector_push(&v, i * i);
        assert_int_equal(v.count, 1000);
        for (int i = 0; i < 1000; i++)
                assert_int_equal(v.items[i], i * i);
        nd_vector_done(&v);
        assert_null(v.items);
        assert_int_equal(v.count, 0);
        assert_int_equal(v.capacity, 0);
}

static void each_visits_every_item_once_and_in_order([[maybe_unused]] void **state) {
        numbers v = {};
        int expected = 0;

        nd_vector_each (item, &v) {
                fail_msg("an empty vector has no item");
        }
        for (int i = 0; i < 20; i++)
                nd_vector_push(&v, i);
        nd_vector_each (item, &v) {
                assert_int_equal(*item, expected++);
        }
        assert_int_equal(expected, 20);
        nd_vector_done(&v);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_vector_keeps_its_items_while_it_grows),
                cmocka_unit_test(each_visits_every_item_once_and_in_order),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
