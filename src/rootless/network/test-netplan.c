/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <arpa/inet.h>
#include <stdio.h>

#include "base/text.h"
#include "rootless/network/netplan.h"

enum { LO = 1, ETH = 2, VPN = 3, BRIDGE = 4 };

static struct nd_netlink_address address(const char *text) {
        struct nd_netlink_address a;

        assert_int_equal(nd_netlink_address_parse(text, &a), 0);
        return a;
}

static const char *link_name(unsigned link, char *buffer) {
        static const char *const names[] = {"?", "lo", "eth0", "tun0", "lxcbr0"};

        return strcpy(buffer, names[link]);
}

struct fixture {
        struct nd_netlink_link_addresses addresses;
        struct nd_netlink_route_list routes;
        struct rootless_netplan_facts facts;
};

static void fixture_done(struct fixture *f) {
        nd_vector_done(&f->addresses);
        nd_vector_done(&f->routes);
}

static void has(struct fixture *f, unsigned link, const char *text, bool global) {
        nd_vector_push(&f->addresses,
                       ((struct nd_netlink_link_address) {.link = link, .address = address(text), .global = global}));
        f->facts = (struct rootless_netplan_facts) {
                .addresses = &f->addresses, .routes = &f->routes, .loopback = LO, .link_name = link_name};
}

static void leads(struct fixture *f, unsigned link, const char *to, const char *gateway, uint32_t metric) {
        nd_vector_push(&f->routes,
                       ((struct nd_netlink_route) {.link = link,
                                                   .to = address(to),
                                                   .gateway = gateway ? address(gateway) : (struct nd_netlink_address) {},
                                                   .metric = metric}));
}

static char *joined(const struct rootless_netplan *plan) {
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_autotext struct nd_text text = ND_TEXT(4096);

        if (!rootless_netplan_helper_argv(plan, 42, &argv))
                return nd_strdup("");
        nd_vector_each (word, &argv) {
                if (*word)
                        nd_text_addf(&text, "%s ", *word);
        }
        return nd_text_steal(&text);
}

static void pasta_uses_the_addresses_of_the_default_route([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        nd_autofree char *argv = nullptr;
        struct rootless_netplan plan;
        char text[ND_ADDRESS_TEXT];

        has(&f, LO, "127.0.0.1/8", false);
        has(&f, ETH, "192.168.1.5/24", true);
        has(&f, ETH, "fe80::5/64", false);
        has(&f, ETH, "2001:db8::5/64", true);
        has(&f, VPN, "10.9.0.7/32", true);
        leads(&f, ETH, "0.0.0.0/0", "192.168.1.1", 100);
        leads(&f, VPN, "0.0.0.0/0", "10.9.0.1", 50);
        leads(&f, ETH, "::/0", "fe80::1", 0);
        rootless_netplan_make(NET_DRIVER_PASTA, 65520, &f.facts, &plan);
        /* the smaller metric wins */
        assert_string_equal(nd_netlink_address_text(&plan.addresses[0], text), "10.9.0.7");
        assert_int_equal(plan.addresses[0].prefix, 32);
        assert_string_equal(nd_netlink_address_text(&plan.gateways[1], text), "fe80::1");
        argv = joined(&plan);
        expect_contains(argv, "--no-map-gw ");
        expect_contains(argv, "-a 10.9.0.7 -n 32 -g 10.9.0.1 -a 2001:db8::5 -g fe80::1 ");
        expect_contains(argv, "--netns /proc/42/ns/net");
        assert_null(strstr(argv, "--config-net"));
}

static void a_plan_is_made_without_a_host_network([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        struct rootless_netplan plan;
        char text[ND_ADDRESS_TEXT];

        has(&f, LO, "127.0.0.1/8", false);
        rootless_netplan_make(NET_DRIVER_PASTA, 65520, &f.facts, &plan);
        assert_string_equal(nd_netlink_address_text(&plan.addresses[0], text), "169.254.2.1");
        assert_int_equal(plan.addresses[1].family, 0);
        assert_string_equal(plan.link, "");
}

static void temporary_addresses_are_not_used([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        struct rootless_netplan plan;
        char text[ND_ADDRESS_TEXT];

        has(&f, ETH, "2001:db8::dead/64", true);
        f.addresses.items[0].temporary = true;
        has(&f, ETH, "2001:db8::5/64", true);
        leads(&f, ETH, "::/0", "fe80::1", 0);
        rootless_netplan_make(NET_DRIVER_PASTA, 65520, &f.facts, &plan);
        assert_string_equal(nd_netlink_address_text(&plan.addresses[1], text), "2001:db8::5");
        assert_int_equal(plan.addresses[0].family, 0);
}

static void slirp_uses_a_network_that_the_host_does_not_use([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        nd_autofree char *argv = nullptr;
        struct rootless_netplan plan;
        char text[ND_ADDRESS_TEXT];

        has(&f, ETH, "10.0.2.15/24", true);
        leads(&f, ETH, "0.0.0.0/0", "10.0.2.2", 0);
        leads(&f, ETH, "10.0.2.0/24", nullptr, 0);
        leads(&f, VPN, "10.213.0.0/16", nullptr, 0);
        rootless_netplan_make(NET_DRIVER_SLIRP, 1500, &f.facts, &plan);
        assert_string_equal(nd_netlink_address_text(&plan.gateways[0], text), "172.29.213.2");
        assert_string_equal(nd_netlink_address_text(&plan.dns, text), "172.29.213.3");
        argv = joined(&plan);
        expect_contains(argv, "--disable-host-loopback --enable-sandbox --enable-seccomp ");
        expect_contains(argv, "--cidr=172.29.213.0/24 ");
        assert_null(strstr(argv, "--configure"));
}

static void slirp_gives_the_node_the_hosts_addresses([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        nd_autofree char *argv = nullptr;
        struct rootless_netplan plan;
        char text[ND_ADDRESS_TEXT];

        has(&f, VPN, "10.9.0.7/24", true);
        has(&f, ETH, "192.168.1.5/24", true);
        has(&f, ETH, "2001:db8::5/64", true);
        leads(&f, ETH, "0.0.0.0/0", "192.168.1.1", 100);
        leads(&f, ETH, "::/0", "fe80::1", 0);
        rootless_netplan_make(NET_DRIVER_SLIRP, 65520, &f.facts, &plan);
        assert_string_equal(nd_netlink_address_text(&plan.addresses[0], text), "192.168.1.5");
        assert_string_equal(nd_netlink_address_text(&plan.addresses[1], text), "2001:db8::5");
        /* no neighbours: slirp4netns does not resolve them */
        assert_int_equal(plan.addresses[0].prefix, 32);
        assert_int_equal(plan.addresses[1].prefix, 128);
        assert_string_equal(nd_netlink_address_text(&plan.gateways[0], text), "10.0.2.2");
        assert_string_equal(nd_netlink_address_text(&plan.gateways[1], text), "fd00::2");
        argv = joined(&plan);
        expect_contains(argv, "--cidr=10.0.2.0/24 --enable-ipv6 ");
}

static void slirp_works_on_a_host_without_an_address([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        struct rootless_netplan plan;
        char text[ND_ADDRESS_TEXT];

        has(&f, LO, "127.0.0.1/8", false);
        rootless_netplan_make(NET_DRIVER_SLIRP, 65520, &f.facts, &plan);
        assert_string_equal(nd_netlink_address_text(&plan.addresses[0], text), "10.0.2.100");
        assert_int_equal(plan.addresses[1].family, 0);
        assert_int_equal(plan.gateways[1].family, 0);
}

static void on_a_bridge_a_node_has_an_address_of_its_own([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        struct rootless_netplan plan, other;
        char text[ND_ADDRESS_TEXT];

        has(&f, ETH, "192.168.1.5/24", true);
        has(&f, BRIDGE, "10.0.3.1/24", true);
        has(&f, BRIDGE, "fd03::1/64", true);
        f.facts.bridge = "lxcbr0";
        f.facts.bridge_mtu = 1500;
        f.facts.owner = "1000/default";
        rootless_netplan_make(NET_DRIVER_LXC, 65520, &f.facts, &plan);
        assert_int_equal(plan.mtu, 1500);
        assert_string_equal(plan.link, "lxcbr0");
        assert_string_equal(nd_netlink_address_text(&plan.gateways[0], text), "10.0.3.1");
        expect_contains(nd_netlink_address_text(&plan.addresses[0], text), "10.0.3.");
        assert_int_equal(plan.addresses[0].prefix, 24);
        expect_contains(nd_netlink_address_text(&plan.addresses[1], text), "fd03::");
        expect_text(joined(&plan), "");
        f.facts.owner = "1000/second";
        rootless_netplan_make(NET_DRIVER_LXC, 65520, &f.facts, &other);
        assert_false(nd_netlink_address_equal(&plan.addresses[0], &other.addresses[0]));
}

static void an_address_on_a_bridge_is_never_reserved([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};

        /* of four addresses, two are usable, and the bridge has one */
        has(&f, BRIDGE, "10.0.3.2/30", true);
        f.facts.bridge = "lxcbr0";
        for (int i = 0; i < 100; i++) {
                nd_autofree char *owner = nd_format("1000/node-%d", i);
                struct rootless_netplan plan;
                char text[ND_ADDRESS_TEXT];

                f.facts.owner = owner;
                rootless_netplan_make(NET_DRIVER_LXC, 1500, &f.facts, &plan);
                assert_string_equal(nd_netlink_address_text(&plan.addresses[0], text), "10.0.3.1");
        }
        f.facts.owner = "1000/node";
        f.addresses.items[0].address = address("10.0.3.2/31"); /* no usable address is left */
        rootless_netplan_make(NET_DRIVER_LXC, 1500, &f.facts, &(struct rootless_netplan) {});
}

static void on_a_bridge_name_servers_are_reachable_from_other_hosts([[maybe_unused]] void **state) {
        struct rootless_netplan plan = {.driver = NET_DRIVER_LXC, .gateways = {address("10.0.3.1")}};

        expect_text(rootless_netplan_resolv_conf(&plan, "nameserver 127.0.0.53\nsearch a.example\n"),
                    "nameserver 10.0.3.1\nsearch a.example\n");
        expect_text(rootless_netplan_resolv_conf(&plan, "nameserver 9.9.9.9\nnameserver ::1\noptions edns0"),
                    "nameserver 9.9.9.9\noptions edns0\n");
        expect_text(rootless_netplan_resolv_conf(&plan, "nameserver \nnameserver x\nnameserver"), "nameserver 10.0.3.1\n");
}

static void drivers_without_a_helper_have_no_command_line([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        struct rootless_netplan plan;

        has(&f, ETH, "10.0.2.15/24", true);
        rootless_netplan_make(NET_DRIVER_NONE, 1500, &f.facts, &plan);
        expect_text(joined(&plan), "");
        rootless_netplan_make(NET_DRIVER_HOST, 1500, &f.facts, &plan);
        expect_text(joined(&plan), "");
        expect_text(rootless_netplan_resolv_conf(&plan, "nameserver 9.9.9.9\n"), "nameserver 9.9.9.9\n");
}

static void the_helper_is_the_name_server_and_options_are_the_hosts([[maybe_unused]] void **state) {
        struct rootless_netplan plan = {.driver = NET_DRIVER_PASTA, .dns = address("169.254.1.1")};

        expect_text(rootless_netplan_resolv_conf(
                            &plan, "# comment\nnameserver 127.0.0.53\nsearch a.example b.example\noptions edns0\nsearching x"),
                    "nameserver 169.254.1.1\nsearch a.example b.example\noptions edns0\n");
        expect_text(rootless_netplan_resolv_conf(&plan, ""), "nameserver 169.254.1.1\n");
}

static void plans_differ_only_by_real_changes([[maybe_unused]] void **state) {
        nd_cleanup(fixture_done) struct fixture f = {};
        struct rootless_netplan a, b;

        has(&f, ETH, "192.168.1.5/24", true);
        leads(&f, ETH, "0.0.0.0/0", "192.168.1.1", 100);
        rootless_netplan_make(NET_DRIVER_PASTA, 65520, &f.facts, &a);
        leads(&f, ETH, "172.16.0.0/12", "192.168.1.9", 0);
        rootless_netplan_make(NET_DRIVER_PASTA, 65520, &f.facts, &b);
        assert_true(rootless_netplan_equal(&a, &b));
        f.addresses.items[0].address = address("192.168.1.6/24");
        rootless_netplan_make(NET_DRIVER_PASTA, 65520, &f.facts, &b);
        assert_false(rootless_netplan_equal(&a, &b));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pasta_uses_the_addresses_of_the_default_route),
                cmocka_unit_test(a_plan_is_made_without_a_host_network),
                cmocka_unit_test(temporary_addresses_are_not_used),
                cmocka_unit_test(slirp_uses_a_network_that_the_host_does_not_use),
                cmocka_unit_test(slirp_gives_the_node_the_hosts_addresses),
                cmocka_unit_test(slirp_works_on_a_host_without_an_address),
                cmocka_unit_test(on_a_bridge_a_node_has_an_address_of_its_own),
                cmocka_unit_test(an_address_on_a_bridge_is_never_reserved),
                cmocka_unit_test(on_a_bridge_name_servers_are_reachable_from_other_hosts),
                cmocka_unit_test(drivers_without_a_helper_have_no_command_line),
                cmocka_unit_test(the_helper_is_the_name_server_and_options_are_the_hosts),
                cmocka_unit_test(plans_differ_only_by_real_changes),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
