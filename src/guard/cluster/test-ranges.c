/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/cluster/ranges.h"

#include <unit/expect.h>

static void annotations_are_equal_to_openshifts([[maybe_unused]] void **state) {
        static const struct {
                uint32_t block;
                const char *uids, *mcs;
        } known[] = {
                {0, "1000000000/10000", "s0:c1,c0"},    {1, "1000010000/10000", "s0:c3,c2"},
                {2, "1000020000/10000", "s0:c5,c0"},    {65, "1000650000/10000", "s0:c26,c0"},
                {75, "1000750000/10000", "s0:c27,c24"}, {99999, "1999990000/10000", "s0:c1000,c495"},
        };
        char text[GUARD_RANGE_TEXT];

        for (size_t i = 0; i < nd_count_of(known); i++) {
                guard_ranges_uids(known[i].block, text);
                assert_string_equal(text, known[i].uids);
                assert_int_equal(guard_ranges_block(text), known[i].block);
                guard_ranges_mcs(known[i].block, text);
                assert_string_equal(text, known[i].mcs);
        }
}

static void foreign_ranges_are_not_blocks([[maybe_unused]] void **state) {
        static const char *const foreign[] = {
                "", "x", "1000/10000", "1000000001/10000", "1000000000/5000", "2000000000/10000", "999990000/10000"};

        for (size_t i = 0; i < nd_count_of(foreign); i++)
                assert_int_equal(guard_ranges_block(foreign[i]), GUARD_RANGE_NONE);
}

static void the_first_free_block_is_taken([[maybe_unused]] void **state) {
        struct guard_ranges ranges = {};

        guard_ranges_take(&ranges, 1);
        assert_int_equal(guard_ranges_next(&ranges), 0);
        assert_int_equal(guard_ranges_next(&ranges), 2);
        guard_ranges_release(&ranges, 1);
        assert_int_equal(guard_ranges_next(&ranges), 1);
        assert_int_equal(guard_ranges_next(&ranges), 3);
        assert_int_equal(ranges.taken, 4);
}

static void every_block_is_allocated_once([[maybe_unused]] void **state) {
        struct guard_ranges ranges = {};

        for (uint32_t i = 0; i < GUARD_RANGE_BLOCKS; i++)
                assert_int_equal(guard_ranges_next(&ranges), i);
        assert_int_equal(guard_ranges_next(&ranges), GUARD_RANGE_NONE);
        guard_ranges_release(&ranges, 777);
        assert_int_equal(guard_ranges_next(&ranges), 777);
}

static void a_record_is_decoded_as_it_was_encoded([[maybe_unused]] void **state) {
        struct guard_ranges ranges = {}, back;
        nd_autofree char *empty = guard_ranges_encode(&ranges), *text = nullptr;

        assert_string_equal(empty, "");
        guard_ranges_take(&ranges, 0);
        guard_ranges_take(&ranges, 12345);
        guard_ranges_take(&ranges, GUARD_RANGE_BLOCKS - 1);
        text = guard_ranges_encode(&ranges);
        expect_ok(guard_ranges_decode(text, strlen(text), &back));
        assert_memory_equal(back.bits, ranges.bits, sizeof back.bits);
        assert_int_equal(back.taken, 3);
        expect_error(guard_ranges_decode("???", 3, &back), ND_INVALID, "not base64");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(annotations_are_equal_to_openshifts),   cmocka_unit_test(foreign_ranges_are_not_blocks),
                cmocka_unit_test(the_first_free_block_is_taken),         cmocka_unit_test(every_block_is_allocated_once),
                cmocka_unit_test(a_record_is_decoded_as_it_was_encoded),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
