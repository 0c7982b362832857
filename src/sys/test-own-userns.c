/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sched.h>
#include <sys/wait.h>

#include "sys/child.h"
#include "sys/own-userns.h"
#include "sys/process.h"

static struct nd_own_userns of(const char *uids, const char *gids) {
        struct nd_own_userns own = {};

        expect_ok(nd_userns_maps_parse(uids, &own.uids));
        expect_ok(nd_userns_maps_parse(gids, &own.gids));
        return own;
}

static void a_node_has_the_ids_of_its_maps([[maybe_unused]] void **state) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own = of("0 1000 1\n1 100000 65536\n", "0 1000 1\n1 100000 10\n");

        assert_true(nd_own_userns_has_uid(&own, 0));
        assert_true(nd_own_userns_has_uid(&own, 65536));
        assert_false(nd_own_userns_has_uid(&own, 65537));
        assert_false(nd_own_userns_has_uid(&own, UINT32_MAX));
        assert_true(nd_own_userns_has_gid(&own, 10));
        assert_false(nd_own_userns_has_gid(&own, 11));
        assert_int_equal(nd_own_userns_last_gid(&own), 10);
}

static void a_block_must_lie_within_one_line_of_both_maps([[maybe_unused]] void **state) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own =
                of("0 1000 1\n1 100000 65536\n65537 300000 65536\n", "0 1000 1\n1 100000 131072\n");
        const struct {
                struct nd_userns_map map;
                bool can;
        } cases[] = {
                {{.outside = 1, .count = 65536}, true},      {{.outside = 65537, .count = 65536}, true},
                {{.outside = 0, .count = 65536}, false},     {{.outside = 2, .count = 65536}, false},
                {{.outside = 65538, .count = 65536}, false}, {{.outside = UINT32_MAX, .count = UINT32_MAX}, false},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                assert_int_equal(nd_own_userns_can_map(&own, &cases[i].map, &cases[i].map), cases[i].can);
}

static void ids_are_described_as_ranges([[maybe_unused]] void **state) {
        static const struct {
                const char *map, *text;
        } cases[] = {
                {"0 1000 1\n", "0"},
                {"0 1000 1\n1 100000 65536\n", "0 to 65536"},
                {"0 0 4294967295\n", "0 to 4294967294"},
                {"0 5 10\n20 50 1\n30 90 10\n", "0 to 9, 20, 30 to 39"},
                {"0 0 1\n2 2 1\n4 4 1\n6 6 1\n8 8 1\n", "0, 2, 4, 6, ..."},
                {"", ""},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(nd_own_userns_done) struct nd_own_userns own = of(cases[i].map, "");
                nd_autofree char *text = nd_own_userns_describe(&own.uids);

                assert_string_equal(text, cases[i].text);
        }
}

static void capabilities_over_the_kernel_exist_on_the_host_only([[maybe_unused]] void **state) {
        const struct nd_own_userns host = {.initial = true}, node = {};

        assert_int_equal(nd_own_userns_over_kernel(&host, 5), 5);
        assert_int_equal(nd_own_userns_over_kernel(&node, 5), 0);
}

static void the_start_of_a_node_is_that_of_its_process_1([[maybe_unused]] void **state) {
        const struct nd_own_userns host = {.initial = true}, node = {};
        char boot[ND_OWN_USERNS_START + 1], start[ND_OWN_USERNS_START + 1];
        nd_autofree char *last = nullptr;
        uint64_t started;

        expect_ok(nd_own_userns_start(&host, boot));
        expect_ok(nd_own_userns_start(&node, start));
        expect_ok(nd_process_start_time(1, &started));
        last = nd_format("-%012llx", (unsigned long long) started);
        assert_memory_equal(start, boot, 23);
        assert_string_equal(start + 23, last);
}

/* In a child: exit status 0 if it sees a namespace that is not the host's. */
static void a_namespace_that_maps_all_ids_is_not_the_hosts([[maybe_unused]] void **state) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns here = {};
        static const struct nd_userns_map all = {.count = UINT32_MAX};
        nd_autoclose int fd = -EBADF;
        int status;
        pid_t pid;

        expect_ok(nd_own_userns_read(&here));
        assert_true(nd_own_userns_has_uid(&here, geteuid()));
        if (!here.initial || geteuid() != 0)
                skip(); /* only the host's root can map all IDs */
        expect_ok(nd_userns_make(&(struct nd_userns_plan) {.uids = &all, .uid_count = 1, .gids = &all, .gid_count = 1}, &fd));
        pid = fork();
        if (pid == 0) {
                struct nd_own_userns own = {};

                if (setns(fd, CLONE_NEWUSER) < 0 || nd_own_userns_read(&own))
                        _exit(2);
                _exit(own.initial || !nd_userns_maps_identity(&own.uids));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void few_ids_are_fewer_than_images_use([[maybe_unused]] void **state) {
        static const struct {
                const char *uids, *gids;
                bool small, single;
        } cases[] = {
                {"0 1000 1\n1 100000 65536\n", "0 1000 1\n1 100000 65536\n", false, false},
                {"0 1000 1\n1 100000 65535\n", "0 1000 1\n1 100000 65535\n", false, false},
                {"0 1000 1\n1 100000 65536\n", "0 1000 1\n1 100000 100\n", true, false},
                {"0 1000 1\n1 100000 2048\n", "0 1000 1\n1 100000 2048\n", true, false},
                {"0 1000 1\n", "0 1000 1\n", true, true},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(nd_own_userns_done) struct nd_own_userns own = of(cases[i].uids, cases[i].gids);

                assert_int_equal(nd_own_userns_is_small(&own), cases[i].small);
                assert_int_equal(nd_own_userns_is_single(&own), cases[i].single);
                own.initial = true;
                assert_false(nd_own_userns_is_small(&own) || nd_own_userns_is_single(&own));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(few_ids_are_fewer_than_images_use),
                cmocka_unit_test(a_node_has_the_ids_of_its_maps),
                cmocka_unit_test(a_block_must_lie_within_one_line_of_both_maps),
                cmocka_unit_test(ids_are_described_as_ranges),
                cmocka_unit_test(capabilities_over_the_kernel_exist_on_the_host_only),
                cmocka_unit_test(the_start_of_a_node_is_that_of_its_process_1),
                cmocka_unit_test(a_namespace_that_maps_all_ids_is_not_the_hosts),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
