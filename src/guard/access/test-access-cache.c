/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/access/access-cache.h"

#include <stdio.h>
#include <unit/expect.h>

enum {
        CROWD = 200000,
        ROOM = 65536, /* answers that the table holds */
};

static void name(char text[static 32], int number) {
        (void) snprintf(text, 32, "question %d", number);
}

static void an_answer_is_known_until_its_time_is_over([[maybe_unused]] void **state) {
        struct guard_access_cache *answers = guard_access_cache_new();
        bool yes = false;

        assert_false(guard_access_cache_get(answers, "a", 10, &yes));
        guard_access_cache_put(answers, "a", 10, 20, true);
        guard_access_cache_put(answers, "b", 10, 30, false);
        assert_true(guard_access_cache_get(answers, "a", 19, &yes));
        assert_true(yes);
        assert_true(guard_access_cache_get(answers, "b", 19, &yes));
        assert_false(yes);
        assert_false(guard_access_cache_get(answers, "a", 20, &yes));
        assert_false(guard_access_cache_get(answers, "", 10, &yes));
        guard_access_cache_free(answers);
}

static void the_last_answer_counts([[maybe_unused]] void **state) {
        struct guard_access_cache *answers = guard_access_cache_new();
        bool yes = false;

        guard_access_cache_put(answers, "a", 10, 20, true);
        guard_access_cache_put(answers, "a", 11, 15, false);
        assert_true(guard_access_cache_get(answers, "a", 12, &yes));
        assert_false(yes);
        assert_false(guard_access_cache_get(answers, "a", 16, &yes)); /* nor does the first one come back */
        guard_access_cache_free(answers);
}

static void what_is_forgotten_is_gone_and_what_comes_later_is_not([[maybe_unused]] void **state) {
        struct guard_access_cache *answers = guard_access_cache_new();
        bool yes = false;

        guard_access_cache_put(answers, "a", 10, 1000, true);
        guard_access_cache_clear(answers);
        assert_false(guard_access_cache_get(answers, "a", 11, &yes));
        guard_access_cache_put(answers, "b", 12, 1000, true);
        assert_true(guard_access_cache_get(answers, "b", 13, &yes));
        assert_true(yes);
        guard_access_cache_free(answers);
}

/* Each of them is either known with its own answer or not at all, and what comes last is known. */
static void a_crowd_pushes_others_out_and_mixes_nothing_up([[maybe_unused]] void **state) {
        struct guard_access_cache *answers = guard_access_cache_new();
        int known = 0;
        char text[32];

        for (int i = 0; i < CROWD; i++) {
                bool yes = false;

                name(text, i);
                guard_access_cache_put(answers, text, 10, 1000 + (uint64_t) i, i % 3 == 0);
                assert_true(guard_access_cache_get(answers, text, 11, &yes));
                assert_int_equal(yes, i % 3 == 0);
        }
        for (int i = 0; i < CROWD; i++) {
                bool yes = false;

                name(text, i);
                if (!guard_access_cache_get(answers, text, 11, &yes))
                        continue;
                assert_int_equal(yes, i % 3 == 0);
                known++;
        }
        assert_in_range(known, ROOM * 9 / 10, ROOM);
        guard_access_cache_free(answers);
}

/* Who lasts longest is pushed out by nobody. */
static void those_that_are_over_go_first([[maybe_unused]] void **state) {
        struct guard_access_cache *answers = guard_access_cache_new();
        bool yes = false;
        char text[32];

        for (int i = 0; i < ROOM; i++) {
                name(text, i);
                guard_access_cache_put(answers, text, 10, 20, false);
        }
        guard_access_cache_put(answers, "lasts", 15, 1000, true);
        for (int i = ROOM; i < 2 * ROOM; i++) {
                name(text, i);
                guard_access_cache_put(answers, text, 30, 900, false);
        }
        assert_true(guard_access_cache_get(answers, "lasts", 40, &yes));
        assert_true(yes);
        guard_access_cache_free(answers);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_answer_is_known_until_its_time_is_over),
                cmocka_unit_test(the_last_answer_counts),
                cmocka_unit_test(what_is_forgotten_is_gone_and_what_comes_later_is_not),
                cmocka_unit_test(a_crowd_pushes_others_out_and_mixes_nothing_up),
                cmocka_unit_test(those_that_are_over_go_first),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
