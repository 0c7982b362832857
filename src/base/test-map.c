/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdio.h>

#include "base/map.h"

static void an_empty_map_accepts_every_operation([[maybe_unused]] void **state) {
        struct nd_map map = {};
        size_t at = 0;

        assert_null(nd_map_get(&map, "a"));
        assert_false(nd_map_has(&map, "a"));
        assert_null(nd_map_remove(&map, "a"));
        assert_null(nd_map_next(&map, &at));
        nd_map_done(&map);
}

static void putting_again_returns_the_former_value([[maybe_unused]] void **state) {
        nd_cleanup(nd_map_done) struct nd_map map = {};
        int one = 1, two = 2;

        assert_null(nd_map_put(&map, "a", &one));
        assert_ptr_equal(nd_map_put(&map, "a", &two), &one);
        assert_ptr_equal(nd_map_get(&map, "a"), &two);
        assert_int_equal(map.count, 1);
}

static void a_key_may_have_a_null_value([[maybe_unused]] void **state) {
        nd_cleanup(nd_map_done) struct nd_map map = {};

        assert_null(nd_map_put(&map, "a", nullptr));
        assert_true(nd_map_has(&map, "a"));
        assert_null(nd_map_get(&map, "a"));
}

static void the_map_keeps_its_own_copy_of_a_key([[maybe_unused]] void **state) {
        nd_cleanup(nd_map_done) struct nd_map map = {};
        char key[] = "first";
        int value;

        (void) nd_map_put(&map, key, &value);
        key[0] = 'F';
        assert_ptr_equal(nd_map_get(&map, "first"), &value);
        assert_false(nd_map_has(&map, "First"));
}

static void keys_survive_growth_and_the_removal_of_others([[maybe_unused]] void **state) {
        enum { KEYS = 5000 };
        nd_cleanup(nd_map_done) struct nd_map map = {};
        static int values[KEYS];
        char key[16];

        for (int i = 0; i < KEYS; i++) {
                (void) snprintf(key, sizeof key, "k%d", i);
                assert_null(nd_map_put(&map, key, &values[i]));
        }
        for (int i = 0; i < KEYS; i += 3) {
                (void) snprintf(key, sizeof key, "k%d", i);
                assert_ptr_equal(nd_map_remove(&map, key), &values[i]);
                assert_null(nd_map_remove(&map, key));
        }
        for (int i = 0; i < KEYS; i++) {
                (void) snprintf(key, sizeof key, "k%d", i);
                assert_ptr_equal(nd_map_get(&map, key), i % 3 == 0 ? nullptr : (void *) &values[i]);
        }
        assert_int_equal(map.count, KEYS - (KEYS + 2) / 3);
}

static void iteration_meets_every_key_once([[maybe_unused]] void **state) {
        nd_cleanup(nd_map_done) struct nd_map map = {};
        const struct nd_map_slot *slot;
        int seen[100] = {};
        char key[16];

        for (int i = 0; i < 100; i++) {
                (void) snprintf(key, sizeof key, "%d", i);
                (void) nd_map_put(&map, key, &seen[i]);
        }
        for (size_t at = 0; (slot = nd_map_next(&map, &at));)
                ++*(int *) slot->value;
        for (int i = 0; i < 100; i++)
                assert_int_equal(seen[i], 1);
}

static void the_empty_string_and_long_strings_are_keys_too([[maybe_unused]] void **state) {
        nd_cleanup(nd_map_done) struct nd_map map = {};
        char key[1000];
        int values[1000];

        memset(key, 'x', sizeof key);
        for (int length = 0; length < 1000; length++) {
                key[length] = '\0';
                (void) nd_map_put(&map, key, &values[length]);
                key[length] = 'x';
        }
        for (int length = 0; length < 1000; length++) {
                key[length] = '\0';
                assert_ptr_equal(nd_map_get(&map, key), &values[length]);
                key[length] = 'x';
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_map_accepts_every_operation),
                cmocka_unit_test(putting_again_returns_the_former_value),
                cmocka_unit_test(a_key_may_have_a_null_value),
                cmocka_unit_test(the_map_keeps_its_own_copy_of_a_key),
                cmocka_unit_test(keys_survive_growth_and_the_removal_of_others),
                cmocka_unit_test(iteration_meets_every_key_once),
                cmocka_unit_test(the_empty_string_and_long_strings_are_keys_too),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
