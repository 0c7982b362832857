/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/access/access-cache.h"

#include <stdio.h>
#include <unit/expect.h>

enum {
        CROWD = 200000,
        ROOM = 65536, /* entries that the table holds */
};

static void name(char text[static 32], int number) {
        (void) snprintf(text, 32, "key %d", number);
}

static void an_entry_is_found_until_it_expires([[maybe_unused]] void **state) {
        struct guard_access_cache *cache = guard_access_cache_new();
        bool allowed = false;

        assert_false(guard_access_cache_get(cache, "a", 10, &allowed));
        guard_access_cache_put(cache, "a", 10, 20, true);
        guard_access_cache_put(cache, "b", 10, 30, false);
        assert_true(guard_access_cache_get(cache, "a", 19, &allowed));
        assert_true(allowed);
        assert_true(guard_access_cache_get(cache, "b", 19, &allowed));
        assert_false(allowed);
        assert_false(guard_access_cache_get(cache, "a", 20, &allowed));
        assert_false(guard_access_cache_get(cache, "", 10, &allowed));
        guard_access_cache_free(cache);
}

static void a_new_entry_replaces_the_old_one([[maybe_unused]] void **state) {
        struct guard_access_cache *cache = guard_access_cache_new();
        bool allowed = false;

        guard_access_cache_put(cache, "a", 10, 20, true);
        guard_access_cache_put(cache, "a", 11, 15, false);
        assert_true(guard_access_cache_get(cache, "a", 12, &allowed));
        assert_false(allowed);
        /* and the first one does not become valid again */
        assert_false(guard_access_cache_get(cache, "a", 16, &allowed));
        guard_access_cache_free(cache);
}

static void a_clear_drops_earlier_entries_only([[maybe_unused]] void **state) {
        struct guard_access_cache *cache = guard_access_cache_new();
        bool allowed = false;

        guard_access_cache_put(cache, "a", 10, 1000, true);
        guard_access_cache_clear(cache);
        assert_false(guard_access_cache_get(cache, "a", 11, &allowed));
        guard_access_cache_put(cache, "b", 12, 1000, true);
        assert_true(guard_access_cache_get(cache, "b", 13, &allowed));
        assert_true(allowed);
        guard_access_cache_free(cache);
}

/* Each key is found with its own result or not at all, and the newest is found. */
static void eviction_under_load_never_mixes_up_entries([[maybe_unused]] void **state) {
        struct guard_access_cache *cache = guard_access_cache_new();
        int known = 0;
        char text[32];

        for (int i = 0; i < CROWD; i++) {
                bool allowed = false;

                name(text, i);
                guard_access_cache_put(cache, text, 10, 1000 + (uint64_t) i, i % 3 == 0);
                assert_true(guard_access_cache_get(cache, text, 11, &allowed));
                assert_int_equal(allowed, i % 3 == 0);
        }
        for (int i = 0; i < CROWD; i++) {
                bool allowed = false;

                name(text, i);
                if (!guard_access_cache_get(cache, text, 11, &allowed))
                        continue;
                assert_int_equal(allowed, i % 3 == 0);
                known++;
        }
        assert_in_range(known, ROOM * 9 / 10, ROOM);
        guard_access_cache_free(cache);
}

/* An entry with a later expiry than all others is never evicted. */
static void expired_entries_are_evicted_first([[maybe_unused]] void **state) {
        struct guard_access_cache *cache = guard_access_cache_new();
        bool allowed = false;
        char text[32];

        for (int i = 0; i < ROOM; i++) {
                name(text, i);
                guard_access_cache_put(cache, text, 10, 20, false);
        }
        guard_access_cache_put(cache, "lasts", 15, 1000, true);
        for (int i = ROOM; i < 2 * ROOM; i++) {
                name(text, i);
                guard_access_cache_put(cache, text, 30, 900, false);
        }
        assert_true(guard_access_cache_get(cache, "lasts", 40, &allowed));
        assert_true(allowed);
        guard_access_cache_free(cache);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_entry_is_found_until_it_expires),
                cmocka_unit_test(a_new_entry_replaces_the_old_one),
                cmocka_unit_test(a_clear_drops_earlier_entries_only),
                cmocka_unit_test(eviction_under_load_never_mixes_up_entries),
                cmocka_unit_test(expired_entries_are_evicted_first),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
