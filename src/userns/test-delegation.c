/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/text.h"
#include "userns/delegation.h"

/* Maps as text, "inside outside count" per line, of ranges "first count" in pairs. */
static char *maps_of(const uint64_t *ranges, size_t count) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list subids = {};
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};
        nd_autotext struct nd_text text = ND_TEXT(64 * 1024);

        for (size_t i = 0; i < count; i++)
                nd_vector_push(&subids, ((struct nd_subid) {.first = ranges[2 * i], .count = ranges[2 * i + 1]}));
        nd_delegation_maps(1000, &subids, &maps);
        nd_vector_each (map, &maps) {
                nd_text_addf(&text, "%u %u %u\n", map->inside, map->outside, map->count);
        }
        return nd_text_steal(&text);
}

static void the_user_is_root_and_the_range_follows([[maybe_unused]] void **state) {
        expect_text(maps_of((uint64_t[]) {100000, 65536}, 1), "0 1000 1\n1 100000 65536\n");
        expect_text(maps_of(nullptr, 0), "0 1000 1\n");
}

static void a_second_range_is_put_where_it_gives_whole_blocks([[maybe_unused]] void **state) {
        /* 1 to 65535 from the first, whose last ID follows; then two whole blocks at 131072. */
        expect_text(maps_of((uint64_t[]) {100000, 65536, 500000, 131072}, 2),
                    "0 1000 1\n1 100000 65536\n131072 500000 131072\n");
        expect_text(maps_of((uint64_t[]) {100000, 65535, 500000, 65536}, 2), "0 1000 1\n1 100000 65535\n65536 500000 65536\n");
}

static void small_ranges_are_joined_until_ids_of_images_are_covered([[maybe_unused]] void **state) {
        expect_text(maps_of((uint64_t[]) {100000, 1000, 200000, 70000}, 2), "0 1000 1\n1 100000 1000\n1001 200000 70000\n");
}

static void ids_that_cannot_be_mapped_are_left_out([[maybe_unused]] void **state) {
        expect_text(maps_of((uint64_t[]) {4294967290, 100}, 1), "0 1000 1\n1 4294967290 5\n");
        expect_text(maps_of((uint64_t[]) {4294967295, 1, 7, 0}, 2), "0 1000 1\n");
}

static void the_number_of_lines_is_limited_to_the_kernel_s([[maybe_unused]] void **state) {
        uint64_t ranges[2 * 400];
        nd_autofree char *text = nullptr;
        size_t lines = 0;

        for (size_t i = 0; i < 400; i++) {
                ranges[2 * i] = 100000 + i * 1000;
                ranges[2 * i + 1] = 10;
        }
        text = maps_of(ranges, 400);
        for (const char *c = text; *c; c++)
                lines += *c == '\n';
        assert_int_equal(lines, ND_ID_MAP_LINES);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_user_is_root_and_the_range_follows),
                cmocka_unit_test(a_second_range_is_put_where_it_gives_whole_blocks),
                cmocka_unit_test(small_ranges_are_joined_until_ids_of_images_are_covered),
                cmocka_unit_test(ids_that_cannot_be_mapped_are_left_out),
                cmocka_unit_test(the_number_of_lines_is_limited_to_the_kernel_s),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
