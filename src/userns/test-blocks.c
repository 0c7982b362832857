/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "userns/blocks.h"

static void all_blocks_are_taken_at_first([[maybe_unused]] void **state) {
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};
        uint32_t found = 7;

        nd_blocks_init(100, &blocks);
        assert_int_equal(blocks.free_count, 0);
        assert_false(nd_blocks_find(&blocks, &found));
        assert_int_equal(found, 7);
        assert_false(nd_blocks_take(&blocks, 5));
}

static void a_block_is_taken_once_and_given_once([[maybe_unused]] void **state) {
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};

        nd_blocks_init(100, &blocks);
        nd_blocks_give(&blocks, 42);
        nd_blocks_give(&blocks, 42);
        assert_int_equal(blocks.free_count, 1);
        assert_true(nd_blocks_is_free(&blocks, 42));
        assert_true(nd_blocks_take(&blocks, 42));
        assert_false(nd_blocks_take(&blocks, 42));
        assert_int_equal(blocks.free_count, 0);
}

static void blocks_past_the_end_are_never_free([[maybe_unused]] void **state) {
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};

        nd_blocks_init(65, &blocks);
        nd_blocks_give(&blocks, 65);
        nd_blocks_give(&blocks, 1 << 20);
        assert_false(nd_blocks_is_free(&blocks, 65));
        assert_false(nd_blocks_take(&blocks, UINT32_MAX));
        assert_int_equal(blocks.free_count, 0);
}

static void a_released_block_is_reused_last([[maybe_unused]] void **state) {
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};
        uint32_t found;

        nd_blocks_init(200, &blocks);
        for (uint32_t i = 0; i < 200; i++)
                nd_blocks_give(&blocks, i);
        for (uint32_t i = 0; i < 199; i++) {
                assert_true(nd_blocks_find(&blocks, &found));
                assert_int_equal(found, i);
                assert_true(nd_blocks_take(&blocks, found));
                if (i == 50)
                        nd_blocks_give(&blocks, 10);
        }
        assert_true(nd_blocks_find(&blocks, &found));
        assert_int_equal(found, 199);
        assert_true(nd_blocks_take(&blocks, found));
        assert_true(nd_blocks_find(&blocks, &found)); /* only after a full round */
        assert_int_equal(found, 10);
}

static void every_block_of_the_largest_space_is_found_once_in_any_order_of_release([[maybe_unused]] void **state) {
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};
        static bool seen[ND_BLOCKS_MOST];
        uint32_t found;

        nd_blocks_init(ND_BLOCKS_MOST, &blocks);
        for (uint32_t i = 0; i < ND_BLOCKS_MOST; i++)
                /* odd, so every number occurs once */
                nd_blocks_give(&blocks, i * 40503u % ND_BLOCKS_MOST);
        assert_int_equal(blocks.free_count, ND_BLOCKS_MOST);
        memset(seen, 0, sizeof seen);
        while (nd_blocks_find(&blocks, &found)) {
                assert_true(nd_blocks_take(&blocks, found));
                assert_false(seen[found]);
                seen[found] = true;
        }
        assert_int_equal(blocks.free_count, 0);
        for (uint32_t i = 0; i < ND_BLOCKS_MOST; i++)
                assert_true(seen[i]);
}

static void a_single_free_block_is_found_from_any_cursor([[maybe_unused]] void **state) {
        static const uint32_t places[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 65535};
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};
        uint32_t found;

        nd_blocks_init(ND_BLOCKS_MOST, &blocks);
        for (size_t i = 0; i < nd_count_of(places); i++)
                for (size_t j = 0; j < nd_count_of(places); j++) {
                        blocks.cursor = places[j];
                        nd_blocks_give(&blocks, places[i]);
                        assert_true(nd_blocks_find(&blocks, &found));
                        assert_int_equal(found, places[i]);
                        assert_true(nd_blocks_take(&blocks, found));
                        assert_false(nd_blocks_find(&blocks, &found));
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_blocks_are_taken_at_first),
                cmocka_unit_test(a_block_is_taken_once_and_given_once),
                cmocka_unit_test(blocks_past_the_end_are_never_free),
                cmocka_unit_test(a_released_block_is_reused_last),
                cmocka_unit_test(every_block_of_the_largest_space_is_found_once_in_any_order_of_release),
                cmocka_unit_test(a_single_free_block_is_found_from_any_cursor),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
