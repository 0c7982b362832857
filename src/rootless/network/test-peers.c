/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "rootless/network/overlay.h"

static struct nd_error *parse(const char *text, struct rootless_peers *ret) {
        return rootless_peers_parse(text, strlen(text), ret);
}

static void refuses(const char *text, const char *words) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autoerror struct nd_error *error = parse(text, &peers);

        assert_non_null(error);
        assert_non_null(strstr(nd_error_text(error), words));
        assert_int_equal(peers.count, 0);
}

static void a_list_has_names_networks_and_hosts([[maybe_unused]] void **state) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autoerror struct nd_error *absent = nullptr;
        const struct rootless_peer *found;
        char text[ND_ADDRESS_TEXT];

        expect_ok(parse(
                "# all nodes\nalpha 10.244.1.0/24 192.0.2.11\r\n\n\tbeta-2.lab\t10.244.2.0/24  192.0.2.12:8473 # rack 2\n"
                "mtu 1400",
                &peers));
        assert_int_equal(peers.count, 2);
        assert_int_equal(peers.mtu, 1400);
        assert_int_equal(peers.items[0].port, PEERS_PORT);
        expect_ok(rootless_peers_find(&peers, "beta-2.lab", &found));
        assert_int_equal(found->port, 8473);
        assert_int_equal(found->pods.prefix, 24);
        assert_string_equal(nd_netlink_address_text(&found->host, text), "192.0.2.12");
        absent = rootless_peers_find(&peers, "gamma", &found);
        assert_non_null(strstr(nd_error_text(absent), "no line for this node, 'gamma'"));
}

static void hosts_may_have_ipv6_addresses([[maybe_unused]] void **state) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};

        expect_ok(parse("a 10.1.0.0/16 2001:db8::1\nb 10.2.0.0/16 [2001:db8::2]:9000\nc 10.3.0.0/16 [2001:db8::3]\n", &peers));
        assert_int_equal(peers.items[1].port, 9000);
        assert_int_equal(peers.items[2].port, PEERS_PORT);
        assert_int_equal(peers.items[2].host.family, AF_INET6);
}

static void a_list_is_written_with_all_ports([[maybe_unused]] void **state) {
        static const struct {
                const char *read, *written;
        } rows[] = {
                {"# nodes\na 10.1.0.0/24 192.0.2.1\n\nb 10.2.0.0/16 192.0.2.1:9000 # two\nmtu 1400\n",
                 "a 10.1.0.0/24 192.0.2.1:8472\nb 10.2.0.0/16 192.0.2.1:9000\nmtu 1400\n"},
                {"a 10.1.0.0/16 2001:db8::1\n", "a 10.1.0.0/16 [2001:db8::1]:8472\n"},
        };

        for (size_t i = 0; i < nd_count_of(rows); i++) {
                nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
                nd_autofree char *text = nullptr;

                expect_ok(parse(rows[i].read, &peers));
                text = rootless_peers_format(&peers);
                assert_string_equal(text, rows[i].written);
        }
}

static void two_nodes_of_a_host_need_different_ports([[maybe_unused]] void **state) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};

        refuses("a 10.1.0.0/24 192.0.2.1\nb 10.2.0.0/24 192.0.2.1:8472\n",
                "'a' and 'b' share a host's address and port: two nodes of one host need different ports, like ADDRESS:8473");
        expect_ok(parse("a 10.1.0.0/24 192.0.2.1\nb 10.2.0.0/24 192.0.2.1:8473\n", &peers));
}

static void a_node_cannot_claim_the_network_of_another([[maybe_unused]] void **state) {
        refuses("a 10.1.0.0/24 192.0.2.1\nb 10.1.0.0/24 192.0.2.2\n", "line 2: the networks of pods of 'a' and 'b' overlap");
        refuses("a 10.1.0.0/16 192.0.2.1\nb 10.1.2.0/24 192.0.2.2\n", "overlap");
        refuses("a 10.1.2.0/24 192.0.2.1\nb 10.0.0.0/8 192.0.2.2\n", "overlap");
        refuses("a 10.1.0.0/24 192.0.2.1\na 10.2.0.0/24 192.0.2.2\n", "node 'a' occurs twice");
}

static void malformed_lists_are_refused_with_the_line([[maybe_unused]] void **state) {
        refuses("", "empty");
        refuses("\n# a 10.1.0.0/24 192.0.2.1\n", "empty");
        refuses("mtu 1400\n", "empty");
        refuses("a 10.1.0.0/24\n", "line 1: must be: NAME POD-NETWORK HOST-ADDRESS[:PORT]");
        refuses("a 10.1.0.0/24 192.0.2.1 x\n", "line 1: more than 3 words");
        refuses("\n\na/b 10.1.0.0/24 192.0.2.1\n", "line 3: invalid name");
        refuses("-a 10.1.0.0/24 192.0.2.1\n", "invalid name");
        refuses("A 10.1.0.0/24 192.0.2.1\n", "invalid name");
        refuses("a 10.1.0.1/24 192.0.2.1\n", "invalid network of pods");
        refuses("a 10.1.0.0 192.0.2.1\n", "invalid network of pods");
        refuses("a 10.1.0.0/31 192.0.2.1\n", "invalid network of pods");
        refuses("a 0.0.0.0/8 192.0.2.1\n", "invalid network of pods");
        refuses("a 127.0.0.0/8 192.0.2.1\n", "invalid network of pods");
        refuses("a 224.0.0.0/8 192.0.2.1\n", "invalid network of pods");
        refuses("a fd00::/64 192.0.2.1\n", "invalid network of pods");
        refuses("a 10.1.0.0/24 192.0.2.1:0\n", "invalid port");
        refuses("a 10.1.0.0/24 192.0.2.1:65536\n", "invalid port");
        refuses("a 10.1.0.0/24 127.0.0.1\n", "invalid host");
        refuses("a 10.1.0.0/24 ::1\n", "invalid host");
        refuses("a 10.1.0.0/24 fe80::1\n", "invalid host");
        refuses("a 10.1.0.0/24 ::ffff:192.0.2.1\n", "invalid host");
        refuses("a 10.1.0.0/24 0.0.0.0\n", "invalid host");
        refuses("a 10.1.0.0/24 255.255.255.255\n", "invalid host");
        refuses("a 10.1.0.0/24 192.0.2.1/24\n", "invalid host");
        refuses("a 10.1.0.0/24 [2001:db8::1\n", "invalid host");
        refuses("a 10.1.0.0/24 [2001:db8::1]x\n", "invalid host");
        refuses("a 10.1.0.0/24 host.example\n", "invalid host");
        refuses("a 10.1.0.0/24 192.0.2.1\nb 10.2.0.0/24 2001:db8::1\n", "different families");
        refuses("a 10.1.0.0/24 192.0.2.1\nmtu 100\n", "invalid mtu");
        refuses("a 10.1.0.0/24 192.0.2.1\nmtu 1400\nmtu 1400\n", "a second mtu");
}

static void a_list_has_limits([[maybe_unused]] void **state) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autotext struct nd_text text = ND_TEXT(PEERS_BYTES), ports = ND_TEXT(PEERS_BYTES);
        nd_autofree char *long_text = nd_malloc(PEERS_BYTES + 2);
        nd_autoerror struct nd_error *error = nullptr;

        for (unsigned i = 0; i < PEERS_MAX; i++)
                nd_text_addf(&text, "n%u 10.%u.%u.0/24 192.0.2.%u:%u\n", i, i / 256, i % 256, i % 200 + 1, 8472 + i / 200);
        expect_ok(parse(nd_text_get(&text), &peers));
        assert_int_equal(peers.count, PEERS_MAX);
        nd_text_add(&text, "more 10.200.0.0/24 192.0.2.250\n");
        refuses(nd_text_get(&text), "more than 512 nodes");
        for (unsigned i = 0; i < PEERS_PORTS_MAX + 1; i++)
                nd_text_addf(&ports, "n%u 10.0.%u.0/24 192.0.2.1:%u\n", i, i, 8472 + i);
        refuses(nd_text_get(&ports), "more than 16 different ports");
        memset(long_text, '#', PEERS_BYTES + 1);
        error = rootless_peers_parse(long_text, PEERS_BYTES + 1, &peers);
        assert_non_null(error);
}

static void the_mtu_leaves_room_for_the_headers([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nullptr;
        uint32_t mtu;

        expect_ok(rootless_overlay_mtu(1500, 65520, AF_INET, &mtu));
        assert_int_equal(mtu, 1450);
        expect_ok(rootless_overlay_mtu(1500, 65520, AF_INET6, &mtu));
        assert_int_equal(mtu, 1430);
        expect_ok(rootless_overlay_mtu(9000, 1500, AF_INET, &mtu));
        assert_int_equal(mtu, 1450);
        expect_ok(rootless_overlay_mtu(65536, 65520, AF_INET6, &mtu));
        assert_int_equal(mtu, PEERS_MTU_MAX);
        error = rootless_overlay_mtu(600, 65520, AF_INET, &mtu);
        assert_non_null(strstr(nd_error_text(error), "at least 626 is needed"));
}

static void init_gets_the_overlay_that_was_made([[maybe_unused]] void **state) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_cleanup(rootless_overlay_done) struct rootless_overlay overlay = {}, again = {};
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autotext struct nd_text text = CONTROL_TEXT;

        expect_ok(parse("a 10.1.0.0/24 192.0.2.1\nb 10.2.0.0/24 192.0.2.2:8473\nc 10.3.0.0/24 192.0.2.3\n", &peers));
        overlay = rootless_overlay_make(&peers, &peers.items[1], 1450);
        assert_int_equal(overlay.count, 2);
        rootless_overlay_format(&text, &overlay);
        expect_ok(rootless_control_parse(text.bytes, text.length, &message));
        expect_ok(rootless_overlay_parse(&message, &again));
        assert_int_equal(again.mtu, 1450);
        assert_int_equal(again.family, AF_INET);
        assert_int_equal(again.count, 2);
        assert_true(nd_netlink_address_equal(&again.pods, &peers.items[1].pods));
        assert_true(nd_netlink_address_equal(&again.items[1].host, &peers.items[2].host));
        assert_int_equal(again.items[1].port, PEERS_PORT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_list_has_names_networks_and_hosts),
                cmocka_unit_test(hosts_may_have_ipv6_addresses),
                cmocka_unit_test(two_nodes_of_a_host_need_different_ports),
                cmocka_unit_test(a_node_cannot_claim_the_network_of_another),
                cmocka_unit_test(malformed_lists_are_refused_with_the_line),
                cmocka_unit_test(a_list_is_written_with_all_ports),
                cmocka_unit_test(a_list_has_limits),
                cmocka_unit_test(the_mtu_leaves_room_for_the_headers),
                cmocka_unit_test(init_gets_the_overlay_that_was_made),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
