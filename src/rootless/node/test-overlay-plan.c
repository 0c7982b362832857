/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "rootless/node/overlay-plan.h"

static void choose(const char *list, const char *name, struct rootless_overlay_plan *ret) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};

        expect_ok(rootless_peers_parse(list, strlen(list), &peers));
        expect_ok(rootless_overlay_plan_choose(&peers, name, 1500, 65520, ret));
}

static void a_node_finds_its_network_port_and_mtu([[maybe_unused]] void **state) {
        nd_cleanup(rootless_overlay_plan_done) struct rootless_overlay_plan plan = {}, set = {};

        choose("a 10.1.0.0/24 192.0.2.1\nb 10.2.0.0/24 192.0.2.1:8473\n", "b", &plan);
        assert_string_equal(plan.pods_text, "10.2.0.0/24");
        assert_int_equal(plan.port, 8473);
        assert_int_equal(plan.peers, 1);
        assert_int_equal(plan.mtu, 1450);
        choose("a 10.1.0.0/24 192.0.2.1\nmtu 9000\n", "a", &set);
        assert_int_equal(set.mtu, 9000);
        assert_true(set.mtu_is_set);
}

static void a_node_that_is_not_listed_is_refused([[maybe_unused]] void **state) {
        nd_cleanup(rootless_overlay_plan_done) struct rootless_overlay_plan plan = {};
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autoerror struct nd_error *error = nullptr;
        const char list[] = "a 10.1.0.0/24 192.0.2.1\n";

        expect_ok(rootless_peers_parse(list, strlen(list), &peers));
        error = rootless_overlay_plan_choose(&peers, "b", 1500, 65520, &plan);
        assert_int_equal(nd_error_code(error), ND_NOT_FOUND);
}

static void networks_of_the_host_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(rootless_overlay_plan_done) struct rootless_overlay_plan plan = {};
        struct rootless_config config = {.net = NET_DRIVER_HOST, .peers = (char *) "/nonexistent"};
        nd_autoerror struct nd_error *error = rootless_overlay_plan_make(&config, "a", &plan);

        assert_non_null(strstr(nd_error_text(error), "not --net host"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_node_finds_its_network_port_and_mtu),
                cmocka_unit_test(a_node_that_is_not_listed_is_refused),
                cmocka_unit_test(networks_of_the_host_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
