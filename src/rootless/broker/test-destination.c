/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "rootless/broker/destination.h"

static const struct rootless_broker_ports https = {.items = {443}, .count = 1};

/* The host's own addresses: one of each family, and one of the loopback link. */
static const char *judge(const char *text, uint16_t port) {
        static const char *const addresses[] = {"10.77.0.2/24", "fd77::2/64", "2001:db8::5/64", "198.51.100.7/32"};
        struct nd_netlink_link_addresses own = {};
        struct nd_netlink_address to = {};
        const char *why;

        for (size_t i = 0; i < nd_count_of(addresses); i++) {
                struct nd_netlink_link_address one = {.link = 2};

                assert_int_equal(nd_netlink_address_parse(addresses[i], &one.address), 0);
                nd_vector_push(&own, one);
        }
        assert_int_equal(nd_netlink_address_parse(text, &to), 0);
        why = rootless_broker_refusal(&https, &own, &to, port);
        nd_vector_done(&own);
        return why;
}

static void addresses_elsewhere_are_allowed([[maybe_unused]] void **state) {
        static const char *const allowed[] = {
                "10.77.0.1", "10.77.0.3",   "192.0.2.1",    "8.8.8.8",          "223.255.255.255",    "172.16.0.1",
                "fd77::1",   "2001:db8::6", "2606:4700::1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "2002:c000:201::1"};

        for (size_t i = 0; i < nd_count_of(allowed); i++)
                assert_null(judge(allowed[i], 443));
}

static void the_host_and_its_neighbourhood_are_refused([[maybe_unused]] void **state) {
        static const char *const refused[] = {
                "127.0.0.1",
                "127.255.255.254",
                "0.0.0.0",
                "0.1.2.3",
                "169.254.169.254",
                "224.0.0.1",
                "239.1.2.3",
                "255.255.255.255",
                "240.0.0.1",
                "10.77.0.2",
                "198.51.100.7",
                "::",
                "::1",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "ff02::1",
                "fd77::2",
                "2001:db8::5",
                "::ffff:127.0.0.1",
                "::ffff:10.77.0.2",
                "::ffff:169.254.1.1",
                "::127.0.0.1",
                "::10.0.0.1",
                "64:ff9b::127.0.0.1",
                "64:ff9b::10.77.0.2",
                "64:ff9b::a9fe:a9fe",
                "64:ff9b:1::1",
                "2002:7f00:1::1",
                "2002:a4d:2::",
                "2001::1",
                "192.0.0.8",
                "::ffff:0.0.0.0",
        };

        for (size_t i = 0; i < nd_count_of(refused); i++)
                if (!judge(refused[i], 443))
                        fail_msg("%s is allowed", refused[i]);
}

static void other_ports_are_refused([[maybe_unused]] void **state) {
        static const uint16_t ports[] = {0, 22, 80, 442, 444, 6443, 65535};

        for (size_t i = 0; i < nd_count_of(ports); i++)
                assert_string_equal(judge("192.0.2.1", ports[i]), "port of no registry");
}

static void lists_of_ports_are_parsed([[maybe_unused]] void **state) {
        static const char *const wrong[] = {"",          "0",    "65536", "443,", ",443",
                                            "443,,5000", "443 ", "x",     "-1",   "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
        struct rootless_broker_ports ports = {};

        expect_ok(rootless_broker_ports_parse("443,5000", &ports));
        assert_int_equal(ports.count, 2);
        assert_int_equal(ports.items[1], 5000);
        for (size_t i = 0; i < nd_count_of(wrong); i++)
                expect_error(rootless_broker_ports_parse(wrong[i], &ports), ND_INVALID, "port");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_elsewhere_are_allowed),
                cmocka_unit_test(the_host_and_its_neighbourhood_are_refused),
                cmocka_unit_test(other_ports_are_refused),
                cmocka_unit_test(lists_of_ports_are_parsed),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
