/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/text.h"
#include "cri/network/cni-config.h"

static const char list[] = "{\"cniVersion\": \"1.0.0\", \"name\": \"pods\", \"plugins\": ["
                           "{\"type\": \"bridge\", \"bridge\": \"cni0\", \"prevResult\": 7},"
                           "{\"type\": \"portmap\", \"capabilities\": {\"portMappings\": true}}]}";

static struct nd_error *parse(const char *text, struct cri_cni_config *ret) {
        return cri_cni_config_parse(text, strlen(text), ret);
}

static void refuses(const char *text, const char *words) {
        struct cri_cni_config config = {};

        expect_error(parse(text, &config), ND_INVALID, words);
        assert_null(config.name);
}

static void a_list_and_a_single_plugin_are_read([[maybe_unused]] void **state) {
        nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {}, single = {};

        expect_ok(parse(list, &config));
        assert_string_equal(config.name, "pods");
        assert_string_equal(config.version, "1.0.0");
        assert_int_equal(config.plugins.count, 2);
        assert_string_equal(config.plugins.items[0].type, "bridge");
        assert_false(config.plugins.items[0].takes_ports);
        assert_true(config.plugins.items[1].takes_ports);
        assert_true(cri_cni_config_del_takes_result(&config));

        expect_ok(parse("{\"name\": \"x\", \"type\": \"ptp\"}", &single));
        assert_int_equal(single.plugins.count, 1);
        assert_string_equal(single.version, "0.1.0");
        assert_false(cri_cni_config_del_takes_result(&single));
}

static void a_missing_plugin_or_one_outside_the_directory_is_refused([[maybe_unused]] void **state) {
        refuses("[]", "not an object");
        refuses("{\"plugins\": [{\"type\": \"a\"}]}", "'name'");
        refuses("{\"name\": \"a/b\", \"type\": \"c\"}", "'name'");
        refuses("{\"name\": \"x\"}", "'type' must be a program name");
        refuses("{\"name\": \"x\", \"plugins\": []}", "'plugins' is empty");
        refuses("{\"name\": \"x\", \"plugins\": [1]}", "not an object");
        refuses("{\"name\": \"x\", \"type\": \"../sh\"}", "'type'");
        refuses("{\"name\": \"x\", \"type\": \"..\"}", "'type'");
        refuses("{\"name\": \"x\", \"type\": 1}", "type");
        refuses("{\"name\": \"x\", \"type\": \"a\", \"type\": \"b\"}", "type");
        refuses("{\"name\": \"x\", \"type\": \"a\", \"capabilities\": {\"portMappings\": 1}}", "portMappings");
        refuses("{", "");
}

static void a_plugins_input_has_the_network_and_the_previous_result([[maybe_unused]] void **state) {
        nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {};
        struct cri_port_request port = {.protocol = PORT_UDP, .container = 53, .host = 5353, .address = (char *) "127.0.0.1"};
        struct cri_sandbox_request pod = {.ports = {.items = &port, .count = 1}};
        char *input = nullptr;

        expect_ok(parse(list, &config));
        expect_ok(cri_cni_config_input(&config, 0, &pod, nullptr, &input));
        expect_text(input, "{\"type\":\"bridge\",\"bridge\":\"cni0\",\"name\":\"pods\",\"cniVersion\":\"1.0.0\"}");
        expect_ok(cri_cni_config_input(&config, 1, &pod, "{\"ips\": []}", &input));
        expect_text(
                input,
                "{\"type\":\"portmap\",\"capabilities\":{\"portMappings\":true},\"name\":\"pods\",\"cniVersion\":\"1.0.0\","
                "\"runtimeConfig\":{\"portMappings\":[{\"hostPort\":5353,\"containerPort\":53,\"protocol\":\"udp\",\"hostIP\":\"127.0.0.1\"}]},"
                "\"prevResult\":{\"ips\":[]}}");
        expect_error(cri_cni_config_input(&config, 1, &pod, "no JSON", &input), ND_INVALID,
                     "result of the plugin before 'portmap'");
}

static void a_plugin_with_the_dns_capability_gets_the_name_servers([[maybe_unused]] void **state) {
        nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {};
        char *words[] = {(char *) "10.0.0.10"};
        struct cri_sandbox_request pod = {.has_dns = true, .dns_servers = {.items = words, .count = 1}};
        char *input = nullptr;

        expect_ok(parse("{\"name\": \"x\", \"type\": \"a\", \"capabilities\": {\"dns\": true}}", &config));
        expect_ok(cri_cni_config_input(&config, 0, &pod, nullptr, &input));
        expect_contains(input, "\"runtimeConfig\":{\"dns\":{\"servers\":[\"10.0.0.10\"],\"searches\":[],\"options\":[]}}");
        free(input);
}

static void a_plugin_with_the_bandwidth_capability_gets_the_bandwidth([[maybe_unused]] void **state) {
        struct cri_pair items[] = {{.key = (char *) "kubernetes.io/ingress-bandwidth", .value = (char *) "10M"},
                                   {.key = (char *) "kubernetes.io/egress-bandwidth", .value = (char *) "1Gi"}};
        struct cri_sandbox_request pod = {.annotations = {.items = items, .count = 2}};
        nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {};
        char *input = nullptr;

        expect_ok(parse(
                "{\"name\": \"x\", \"plugins\": [{\"type\": \"a\", \"capabilities\": {\"bandwidth\": true}}, {\"type\": \"b\"}]}",
                &config));
        expect_ok(cri_cni_config_input(&config, 0, &pod, nullptr, &input));
        expect_contains(input, "\"runtimeConfig\":{\"bandwidth\":{\"ingressRate\":10000000,\"ingressBurst\":4294967295,"
                               "\"egressRate\":1073741824,\"egressBurst\":4294967295}}");
        free(nd_take_ptr(input));
        pod.annotations.count = 1;
        expect_ok(cri_cni_config_input(&config, 0, &pod, nullptr, &input));
        expect_contains(input, "{\"bandwidth\":{\"ingressRate\":10000000,\"ingressBurst\":4294967295}}");
        free(nd_take_ptr(input));
        expect_ok(cri_cni_config_input(&config, 1, &pod, nullptr, &input));
        assert_null(strstr(input, "runtimeConfig"));
        free(nd_take_ptr(input));
        items[0].value = (char *) "much"; /* of a pod older than the check */
        expect_ok(cri_cni_config_input(&config, 0, &pod, nullptr, &input));
        assert_null(strstr(input, "runtimeConfig"));
        free(input);
}

static void check_is_supported_since_0_4_0_unless_disabled([[maybe_unused]] void **state) {
        static const struct {
                const char *more;
                bool expected;
        } cases[] = {{"", false},
                     {", \"cniVersion\": \"0.3.1\"", false},
                     {", \"cniVersion\": \"0.4.0\"", true},
                     {", \"cniVersion\": \"1.1.0\", \"disableCheck\": false", true},
                     {", \"cniVersion\": \"1.0.0\", \"disableCheck\": true", false},
                     {", \"cniVersion\": \"1.0.0\", \"disableCheck\": \"False\"", true},
                     {", \"cniVersion\": \"1.0.0\", \"disableCheck\": \"true\"", false},
                     {", \"cniVersion\": \"1.0.0\", \"disableCheck\": 7", false}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *text = nd_format("{\"name\": \"x\", \"type\": \"a\"%s}", cases[i].more);
                nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {};

                expect_ok(parse(text, &config));
                assert_int_equal(cri_cni_config_takes_check(&config), cases[i].expected);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_list_and_a_single_plugin_are_read),
                cmocka_unit_test(a_missing_plugin_or_one_outside_the_directory_is_refused),
                cmocka_unit_test(a_plugins_input_has_the_network_and_the_previous_result),
                cmocka_unit_test(a_plugin_with_the_dns_capability_gets_the_name_servers),
                cmocka_unit_test(a_plugin_with_the_bandwidth_capability_gets_the_bandwidth),
                cmocka_unit_test(check_is_supported_since_0_4_0_unless_disabled),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
