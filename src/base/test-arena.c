/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>

#include <unit/expect.h>

static void memory_is_zeroed_and_aligned([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};

        for (size_t size = 1; size < 9000; size += 37) {
                unsigned char *memory = nd_arena_alloc(&arena, 1, size);

                assert_int_equal((uintptr_t) memory % alignof(max_align_t), 0);
                for (size_t i = 0; i < size; i++)
                        assert_int_equal(memory[i], 0);
                memset(memory, 0xaa, size);
        }
}

static void texts_stay_where_they_are([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};
        const char *first = nd_arena_format(&arena, "%s-%d", "pod", 1), *long_one;

        for (int i = 0; i < 10000; i++)
                (void) nd_arena_alloc(&arena, 3, 7);
        long_one = nd_arena_format(&arena, "%0600d", 7);
        assert_string_equal(first, "pod-1");
        assert_int_equal(strlen(long_one), 600);
        assert_string_equal(nd_arena_strdup(&arena, ""), "");
}

static void a_reset_arena_is_zeroed_again([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};

        nd_arena_reset(&arena);
        for (int round = 0; round < 50; round++) {
                unsigned char *memory = nd_arena_alloc(&arena, 1, 3000);

                for (size_t i = 0; i < 3000; i++)
                        assert_int_equal(memory[i], 0);
                memset(memory, 0xff, 3000);
                memset(nd_arena_alloc(&arena, 1, 100000), 0xff, 100000);
                nd_arena_reset(&arena);
        }
        assert_true(arena.total < 1 << 20);
}

static void one_huge_request_is_not_kept([[maybe_unused]] void **state) {
        nd_autoarena struct nd_arena arena = {};

        (void) nd_arena_alloc(&arena, 1, 4 << 20);
        nd_arena_reset(&arena);
        assert_int_equal(arena.total, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(memory_is_zeroed_and_aligned),
                cmocka_unit_test(texts_stay_where_they_are),
                cmocka_unit_test(a_reset_arena_is_zeroed_again),
                cmocka_unit_test(one_huge_request_is_not_kept),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
