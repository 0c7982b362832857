/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "rootless/node/ids.h"
#include "userns/delegation.h"

static struct rootless_ids of(uint64_t count) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list ranges = {};
        struct rootless_ids ids = {};

        nd_vector_push(&ranges, ((struct nd_subid) {.first = 100000, .count = count}));
        nd_delegation_maps(1000, &ranges, &ids.uids);
        nd_delegation_maps(1000, &ranges, &ids.gids);
        ids.pods = nd_delegation_pods(&ids.uids, &ids.gids);
        return ids;
}

static void the_summary_has_the_number_of_pods([[maybe_unused]] void **state) {
        static const struct {
                uint64_t count;
                const char *text;
        } cases[] = {
                {0, "1 ID, not enough for pods with hostUsers: false (65536 for each, and 65536 for the node)"},
                {2048, "2049 IDs, not enough for pods with hostUsers: false (65536 for each, and 65536 for the node)"},
                {65536, "65537 IDs, not enough for pods with hostUsers: false (65536 for each, and 65536 for the node)"},
                {131071, "131072 IDs, enough for 1 pod with hostUsers: false"},
                {1048576, "1048577 IDs, enough for 15 pods with hostUsers: false"},
                {7274495, "7274496 IDs, enough for 110 pods with hostUsers: false"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(rootless_ids_done) struct rootless_ids ids = of(cases[i].count);

                expect_text(rootless_ids_summary(&ids), cases[i].text);
        }
}

static void limits_are_named_for_few_ids_only([[maybe_unused]] void **state) {
        static const struct {
                uint64_t count;
                size_t limits;
        } cases[] = {{0, 4}, {2048, 2}, {65535, 0}, {65536, 0}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(rootless_ids_done) struct rootless_ids ids = of(cases[i].count);
                nd_cleanup(nd_strings_done) struct nd_strings limits = {};

                rootless_ids_limits(&ids, &limits);
                assert_int_equal(limits.count, cases[i].limits);
                assert_int_equal(rootless_ids_single(&ids.uids, &ids.gids), cases[i].count == 0);
        }
}

static void limits_list_the_ids_that_exist([[maybe_unused]] void **state) {
        nd_cleanup(rootless_ids_done) struct rootless_ids ids = of(2048);
        nd_cleanup(nd_strings_done) struct nd_strings limits = {};

        rootless_ids_limits(&ids, &limits);
        assert_string_equal(limits.items[0],
                            "runAsUser, runAsGroup, fsGroup and supplementalGroups: only users 0 to 2045, 65532 to 65534 and "
                            "groups 0 to 2045, 65532 to 65534 exist");
}

static void our_own_process_has_ids([[maybe_unused]] void **state) {
        nd_cleanup(rootless_ids_done) struct rootless_ids ids = {};

        expect_ok(rootless_ids_of_process(getpid(), &ids));
        assert_true(nd_delegation_count(&ids.uids) >= 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_summary_has_the_number_of_pods),
                cmocka_unit_test(limits_are_named_for_few_ids_only),
                cmocka_unit_test(limits_list_the_ids_that_exist),
                cmocka_unit_test(our_own_process_has_ids),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
