/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <arpa/inet.h>
#include <string.h>

#include "rootless/network/vxlan-filter.h"

enum { VNI = 28260, FRAME = 8 + 14 + 20 };

static void filter_cleanup(struct rootless_vxlan_filter **filter) {
        rootless_vxlan_filter_free(*filter);
}

static struct nd_netlink_address address(const char *text) {
        struct nd_netlink_address a;

        assert_int_equal(nd_netlink_address_parse(text, &a), 0);
        return a;
}

/* A VXLAN frame with an IPv4 header. */
static void make_frame(uint8_t ret[static FRAME], const char *source, const char *destination) {
        struct nd_netlink_address from = address(source), to = address(destination);

        memset(ret, 0, FRAME);
        ret[0] = 8;
        ret[4] = VNI >> 16 & 0xff;
        ret[5] = VNI >> 8 & 0xff;
        ret[6] = VNI & 0xff;
        ret[8 + 12] = 8;
        ret[8 + 14] = 0x45;
        memcpy(ret + 8 + 14 + 12, from.bytes, 4);
        memcpy(ret + 8 + 14 + 16, to.bytes, 4);
}

static bool accepts(const struct rootless_vxlan_filter *filter, const char *host, const char *source,
                    const char *destination) {
        struct nd_netlink_address sender = address(host);
        uint8_t frame[FRAME];

        make_frame(frame, source, destination);
        return rootless_vxlan_filter_accepts(filter, &sender, frame, sizeof frame);
}

static struct rootless_vxlan_filter *make(void) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        struct rootless_vxlan_filter *filter = nullptr;
        nd_autofree char *text = nullptr;
        const char list[] = "a 10.1.0.0/24 192.0.2.1\nb 10.2.0.0/24 192.0.2.2\nc 10.3.0.0/24 192.0.2.3\n"
                            "d 10.4.0.0/24 192.0.2.3:8473\n";

        expect_ok(rootless_peers_parse(list, strlen(list), &peers));
        text = rootless_vxlan_filter_format(&peers, &peers.items[0], VNI);
        assert_string_equal(text, "28260 10.1.0.0/24 192.0.2.2=10.2.0.0/24,192.0.2.3=10.3.0.0/24,192.0.2.3=10.4.0.0/24");
        expect_ok(rootless_vxlan_filter_parse(text, &filter));
        return filter;
}

static void pods_of_peers_reach_pods_of_this_node([[maybe_unused]] void **state) {
        nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = make();

        assert_true(accepts(filter, "192.0.2.2", "10.2.0.9", "10.1.0.2"));
        assert_true(accepts(filter, "192.0.2.3", "10.3.0.9", "10.1.0.2"));
        /* two nodes of one host */
        assert_true(accepts(filter, "192.0.2.3", "10.4.0.9", "10.1.0.2"));
}

static void hosts_that_are_not_peers_reach_nothing([[maybe_unused]] void **state) {
        nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = make();

        assert_false(accepts(filter, "192.0.2.9", "10.2.0.9", "10.1.0.2"));
        assert_false(accepts(filter, "127.0.0.1", "10.2.0.9", "10.1.0.2"));
        assert_false(accepts(filter, "192.0.2.1", "10.1.0.9", "10.1.0.2")); /* this host */
        assert_false(accepts(filter, "2001:db8::2", "10.2.0.9", "10.1.0.2"));
}

static void a_peer_cannot_send_as_pods_of_another([[maybe_unused]] void **state) {
        nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = make();

        assert_false(accepts(filter, "192.0.2.2", "10.3.0.9", "10.1.0.2"));
        /* as a pod of this node */
        assert_false(accepts(filter, "192.0.2.2", "10.1.0.9", "10.1.0.2"));
        assert_false(accepts(filter, "192.0.2.2", "127.0.0.1", "10.1.0.2"));
        assert_false(accepts(filter, "192.0.2.2", "192.0.2.2", "10.1.0.2"));
}

static void a_peer_reaches_only_pods_of_this_node([[maybe_unused]] void **state) {
        nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = make();

        assert_false(accepts(filter, "192.0.2.2", "10.2.0.9", "192.0.2.1"));
        assert_false(accepts(filter, "192.0.2.2", "10.2.0.9", "127.0.0.1"));
        assert_false(accepts(filter, "192.0.2.2", "10.2.0.9", "10.3.0.2"));
        assert_false(accepts(filter, "192.0.2.2", "10.2.0.9", "255.255.255.255"));
        assert_false(accepts(filter, "192.0.2.2", "10.2.0.9", "224.0.0.1"));
}

static void other_frames_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = make();
        struct nd_netlink_address sender = address("192.0.2.2");
        static const struct {
                size_t at;
                uint8_t value;
        } changes[] = {{0, 0}, {0, 0x0c}, {6, 0}, {8 + 12, 0x86}, {8 + 13, 0x06}, {8 + 12, 0x81}, {8 + 14, 0x65}};
        uint8_t frame[FRAME];

        make_frame(frame, "10.2.0.9", "10.1.0.2");
        for (size_t length = 0; length < FRAME; length++)
                assert_false(rootless_vxlan_filter_accepts(filter, &sender, frame, length));
        for (size_t i = 0; i < nd_count_of(changes); i++) {
                make_frame(frame, "10.2.0.9", "10.1.0.2");
                frame[changes[i].at] = changes[i].value;
                assert_false(rootless_vxlan_filter_accepts(filter, &sender, frame, sizeof frame));
        }
}

static void invalid_filters_are_refused([[maybe_unused]] void **state) {
        static const char *const texts[] = {"",
                                            "1",
                                            "x 10.1.0.0/24",
                                            "16777216 10.1.0.0/24",
                                            "1 10.1.0.0",
                                            "1 fd00::/64",
                                            "1 10.1.0.0/24 192.0.2.1",
                                            "1 10.1.0.0/24 192.0.2.1=10.2.0.0",
                                            "1 10.1.0.0/24 192.0.2.1/24=10.2.0.0/24",
                                            "1 10.1.0.0/24 host=10.2.0.0/24"};

        for (size_t i = 0; i < nd_count_of(texts); i++) {
                nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = nullptr;
                nd_autoerror struct nd_error *error = rootless_vxlan_filter_parse(texts[i], &filter);

                assert_non_null(error);
                assert_null(filter);
        }
}

static void a_node_without_peers_accepts_nothing([[maybe_unused]] void **state) {
        nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = nullptr;

        expect_ok(rootless_vxlan_filter_parse("28260 10.1.0.0/24", &filter));
        assert_int_equal(filter->count, 0);
        assert_false(accepts(filter, "192.0.2.2", "10.2.0.9", "10.1.0.2"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pods_of_peers_reach_pods_of_this_node),
                cmocka_unit_test(hosts_that_are_not_peers_reach_nothing),
                cmocka_unit_test(a_peer_cannot_send_as_pods_of_another),
                cmocka_unit_test(a_peer_reaches_only_pods_of_this_node),
                cmocka_unit_test(other_frames_are_refused),
                cmocka_unit_test(invalid_filters_are_refused),
                cmocka_unit_test(a_node_without_peers_accepts_nothing),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
