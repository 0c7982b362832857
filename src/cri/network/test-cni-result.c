/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cri/network/cni-result.h"

static void gives(const char *text, const char *first, const char *second) {
        nd_cleanup(nd_strings_done) struct nd_strings addresses = {};

        expect_ok(cri_cni_result_addresses(text, strlen(text), "eth0", &addresses));
        assert_int_equal(addresses.count, (first ? 1 : 0) + (second ? 1 : 0));
        if (first)
                assert_string_equal(addresses.items[0], first);
        if (second)
                assert_string_equal(addresses.items[1], second);
}

static void refuses(const char *text, const char *words) {
        nd_cleanup(nd_strings_done) struct nd_strings addresses = {};

        expect_error(cri_cni_result_addresses(text, strlen(text), "eth0", &addresses), ND_INVALID, words);
}

static void addresses_of_the_pod_s_interface_are_taken_in_order([[maybe_unused]] void **state) {
        gives("{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"eth0\"},{\"name\":\"eth0\",\"sandbox\":\"/n\"}],"
              "\"ips\":[{\"interface\":1,\"address\":\"10.0.0.2/24\"},{\"interface\":0,\"address\":\"10.0.0.1/24\"},"
              "{\"interface\":1,\"address\":\"fd00::2/64\"}]}",
              "10.0.0.2", "fd00::2");
        /* without interfaces all addresses count */
        gives("{\"ips\":[{\"address\":\"10.0.0.2/24\"}]}", "10.0.0.2", nullptr);
        gives("{\"ip4\":{\"ip\":\"10.0.0.2/24\"},\"ip6\":{\"ip\":\"fd00::2/64\"}}", "10.0.0.2", "fd00::2");
        gives("{}", nullptr, nullptr);
}

static void invalid_addresses_are_refused([[maybe_unused]] void **state) {
        refuses("{\"ips\":[{\"address\":\"10.0.0.256/24\"}]}", "invalid IP address");
        refuses("{\"ips\":[{\"address\":\"10.0.0.2\\u0000/24\"}]}", "");
        refuses("{\"ips\":[{}]}", "has no address");
        refuses("{\"ips\":[7]}", "not an object");
        refuses("{\"ip4\":{\"ip\":\"x\"}}", "invalid IP address");
        refuses("[]", "not an object");
        refuses("", "");
}

static void an_error_quotes_the_plugin([[maybe_unused]] void **state) {
        static const char error[] = "{\"code\":11,\"msg\":\"not yet\",\"details\":\"the agent is not up\"}";

        expect_error(cri_cni_result_error(error, sizeof error - 1), ND_UNAVAILABLE,
                     "not yet: the agent is not up (CNI code 11)");
        expect_error(cri_cni_result_error("panic: x\n", 9), ND_INTERNAL, "panic: x");
        expect_error(cri_cni_result_error("{\"code\":7}", 10), ND_INTERNAL, "{\"code\":7}");
        expect_error(cri_cni_result_error("\n", 1), ND_INTERNAL, "the plugin failed without output");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_of_the_pod_s_interface_are_taken_in_order),
                cmocka_unit_test(invalid_addresses_are_refused),
                cmocka_unit_test(an_error_quotes_the_plugin),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
