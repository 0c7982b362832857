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

static void with_few_ids_the_unprivileged_users_of_images_exist([[maybe_unused]] void **state) {
        expect_text(maps_of((uint64_t[]) {100000, 2048}, 1), "0 1000 1\n1 100000 2045\n65532 102045 3\n");
        expect_text(maps_of((uint64_t[]) {100000, 1024, 300000, 1024}, 2),
                    "0 1000 1\n1 100000 1024\n1025 300000 1021\n65532 301021 3\n");
        expect_text(maps_of((uint64_t[]) {100000, 1000, 300000, 2}, 2),
                    "0 1000 1\n1 100000 999\n65532 100999 1\n65533 300000 2\n");
        expect_text(maps_of((uint64_t[]) {100000, 65534}, 1), "0 1000 1\n1 100000 65534\n");
        expect_text(maps_of((uint64_t[]) {100000, 63}, 1), "0 1000 1\n1 100000 63\n");
}

/* First ID and number of blocks, of the same ranges for users and groups. */
static void expect_pods(const uint64_t *ranges, size_t count, uint32_t first, uint32_t pods) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list subids = {};
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};
        struct nd_userns_range range;

        for (size_t i = 0; i < count; i++)
                nd_vector_push(&subids, ((struct nd_subid) {.first = ranges[2 * i], .count = ranges[2 * i + 1]}));
        nd_delegation_maps(1000, &subids, &maps);
        range = nd_delegation_pods(&maps, &maps);
        assert_int_equal(range.first, first);
        assert_int_equal(range.count, pods * ND_IDS_UNIT);
        if (pods > 0)
                expect_ok(nd_range_check(range, ND_IDS_UNIT, pods));
}

static void pods_get_the_longest_run_of_whole_blocks([[maybe_unused]] void **state) {
        constexpr uint64_t unit = ND_IDS_UNIT;

        expect_pods(nullptr, 0, 0, 0);
        expect_pods((uint64_t[]) {100000, unit}, 1, 0, 0);
        expect_pods((uint64_t[]) {100000, 2 * unit - 1}, 1, 65536, 1); /* the user is ID 0 */
        expect_pods((uint64_t[]) {100000, 111 * unit - 1}, 1, 65536, 110);
        expect_pods((uint64_t[]) {100000, unit, 524288, 15 * unit}, 2, 131072, 15);
        /* two runs that are adjacent inside are one for the kubelet */
        expect_pods((uint64_t[]) {100000, 2 * unit - 1, 524288, 3 * unit}, 2, 65536, 4);
        /* and a gap separates them */
        expect_pods((uint64_t[]) {100000, 3 * unit, 800000, 2 * unit}, 2, 65536, 2);
}

static void a_block_of_pods_exists_for_users_and_groups([[maybe_unused]] void **state) {
        struct nd_userns_map uid[] = {{0, 1000, 1}, {1, 100000, 10 * ND_IDS_UNIT}},
                             gid[] = {{0, 1000, 1}, {1, 100000, 3 * ND_IDS_UNIT - 1}};
        struct nd_userns_range range = nd_delegation_pods(&(struct nd_userns_maps) {.items = uid, .count = 2},
                                                          &(struct nd_userns_maps) {.items = gid, .count = 2});

        assert_int_equal(range.first, 65536);
        assert_int_equal(range.count, 2 * ND_IDS_UNIT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(with_few_ids_the_unprivileged_users_of_images_exist),
                cmocka_unit_test(pods_get_the_longest_run_of_whole_blocks),
                cmocka_unit_test(a_block_of_pods_exists_for_users_and_groups),
                cmocka_unit_test(the_user_is_root_and_the_range_follows),
                cmocka_unit_test(a_second_range_is_put_where_it_gives_whole_blocks),
                cmocka_unit_test(small_ranges_are_joined_until_ids_of_images_are_covered),
                cmocka_unit_test(ids_that_cannot_be_mapped_are_left_out),
                cmocka_unit_test(the_number_of_lines_is_limited_to_the_kernel_s),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
