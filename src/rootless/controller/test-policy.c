/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "rootless/controller/events.h"
#include "rootless/controller/manifest.h"
#include "rootless/controller/policy.h"
#include "rootless/controller/settings.h"

/* ---- ranges ---- */

static void test_ranges_are_lists_of_ports([[maybe_unused]] void **state) {
        static const struct {
                const char *text;
                uint16_t port;
                bool is_in;
        } rows[] = {{"none", 80, false},          {"all", 1, true},
                    {"all", 65535, true},         {"80,443", 443, true},
                    {"80,443", 81, false},        {"30000-32767", 30000, true},
                    {"30000-32767", 32767, true}, {"30000-32767", 29999, false}};

        for (size_t i = 0; i < nd_count_of(rows); i++) {
                struct rootless_port_ranges ranges;

                expect_ok(rootless_port_ranges_parse(rows[i].text, &ranges));
                assert_int_equal(rootless_port_ranges_have(&ranges, rows[i].port), rows[i].is_in);
        }
}

static void test_invalid_ranges_are_rejected([[maybe_unused]] void **state) {
        static const char *const bad[] = {"", ",", "0", "80-", "-80", "443-80", "65536", "80;443", " 80", "1-2-3", "any"};

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                struct rootless_port_ranges ranges;

                expect_error(rootless_port_ranges_parse(bad[i], &ranges), ND_INVALID, "invalid range");
        }
}

/* ---- settings ---- */

static const char *no_variable([[maybe_unused]] const char *name) {
        return nullptr;
}

static const char *some_variables(const char *name) {
        return nd_streq(name, "NODENS_CONTROLLER_KUBECONFIG") ? "/home/alice/cluster.conf"
               : nd_streq(name, "NODENS_NODE_NAME")           ? "laptop"
               : nd_streq(name, "NODENS_HOST_PORTS")          ? "8080"
               : nd_streq(name, "NODENS_PORT_OFFSET")         ? "10000"
               : nd_streq(name, "NODENS_LABEL")               ? "own"
               : nd_streq(name, "NODENS_NODE_PORTS")          ? ""
                                                              : nullptr;
}

static void test_settings_come_from_options_then_variables([[maybe_unused]] void **state) {
        nd_cleanup(rootless_controller_config_done) struct rootless_controller_config config = {};

        expect_ok(rootless_controller_config_resolve(
                &(struct rootless_controller_settings) {.name = "n", .port_offset = "20000"}, some_variables, &config));
        assert_string_equal(config.kubeconfig, "/home/alice/cluster.conf");
        assert_string_equal(config.node_name, "laptop");
        assert_int_equal(config.policy.offset, 20000);
        assert_true(rootless_port_ranges_have(&config.policy.host_ports, 8080));
        assert_true(rootless_port_ranges_have(&config.policy.node_ports, 30000));
        assert_false(rootless_port_ranges_have(&config.policy.node_ports, 8080));
        assert_int_equal(config.policy.load_balancer_ports.count, 0);
        assert_int_equal(config.label, LABEL_OWN);
        assert_null(config.ingress_address);
}

static void test_invalid_settings_are_rejected([[maybe_unused]] void **state) {
        static const struct {
                struct rootless_controller_settings settings;
                const char *text;
        } rows[] = {
                {{}, "no kubeconfig"},
                {{.kubeconfig = "f", .name = "../x"}, "invalid node name"},
                {{.kubeconfig = "f", .node_name = "a&b=c"}, "invalid name of a Node"},
                {{.kubeconfig = "f", .host_ports = "x"}, "--host-ports: invalid range"},
                {{.kubeconfig = "f", .port_offset = "70000"}, "--port-offset"},
                {{.kubeconfig = "f", .address = "localhost"}, "--address: invalid address"},
                {{.kubeconfig = "f", .ingress_address = "10.0.0.1/8"}, "--ingress-address: invalid address"},
                {{.kubeconfig = "f", .label = "some"}, "--label"},
        };

        for (size_t i = 0; i < nd_count_of(rows); i++) {
                struct rootless_controller_config config = {};

                expect_error(rootless_controller_config_resolve(&rows[i].settings, no_variable, &config), ND_INVALID,
                             rows[i].text);
        }
}

/* ---- the manifest ---- */

static char *manifest(const struct rootless_manifest_settings *settings) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 16);

        expect_ok(rootless_manifest_write(settings, &text));
        return nd_text_steal(&text);
}

static void test_the_manifest_grants_what_the_options_need([[maybe_unused]] void **state) {
        nd_autofree char *all = manifest(&(struct rootless_manifest_settings) {}),
                         *own = manifest(&(struct rootless_manifest_settings) {
                                 .label = "own", .node_name = "laptop", .namespace = "n", .user = "alice", .ingress = true}),
                         *none = manifest(&(struct rootless_manifest_settings) {.label = "none"});

        expect_contains(all, "resources: [nodes], verbs: [patch]");
        expect_contains(all, "name: \"system:node-proxier\"");
        assert_null(strstr(all, "services/status"));
        expect_contains(own, "resourceNames: [\"laptop\"], verbs: [patch]");
        expect_contains(own, "resources: [services/status], verbs: [patch]");
        expect_contains(own, "kind: User, name: \"alice\"");
        expect_contains(own, "metadata: {name: nodens-rootless-controller, namespace: n}");
        assert_null(strstr(own, "resources: [nodes], verbs: [patch]"));
        assert_null(strstr(none, "resources: [nodes]"));
}

static void test_names_cannot_add_to_the_manifest([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 16);

        expect_error(rootless_manifest_write(&(struct rootless_manifest_settings) {.namespace = "a\nkind: x"}, &text),
                     ND_INVALID, "--namespace");
        expect_error(rootless_manifest_write(&(struct rootless_manifest_settings) {.user = "a\"}"}, &text), ND_INVALID,
                     "--user");
        expect_error(rootless_manifest_write(&(struct rootless_manifest_settings) {.label = "own"}, &text), ND_INVALID,
                     "needs --node-name");
        expect_error(rootless_manifest_write(&(struct rootless_manifest_settings) {.node_name = "n"}, &text), ND_INVALID,
                     "needs --label own");
        assert_int_equal(text.length, 0);
}

/* ---- Events ---- */

static void test_an_event_is_about_its_object([[maybe_unused]] void **state) {
        struct rootless_object_id object = {
                .kind = "Service", .namespace = (char *) "default", .name = (char *) "web", .uid = (char *) "u-1"};
        char text[2 * EVENTS_TEXT];
        nd_autofree char *body = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;

        memset(text, 'x', sizeof text);
        memcpy(text, "a\x1b[31m", 6);
        text[sizeof text - 1] = '\0';
        body = rootless_events_format(&object, "PortNotPublished", text, "laptop", 1767225600);
        expect_ok(nd_json_parse(body, strlen(body), 1 << 20, &doc));
        root = yyjson_doc_get_root(doc);
        assert_string_equal(yyjson_get_str(yyjson_obj_get(yyjson_obj_get(root, "involvedObject"), "name")), "web");
        assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "firstTimestamp")), "2026-01-01T00:00:00Z");
        assert_int_equal(yyjson_get_len(yyjson_obj_get(root, "message")), EVENTS_TEXT);
        assert_int_equal(strncmp(yyjson_get_str(yyjson_obj_get(root, "message")), "a [31mx", 7), 0);
}

static void test_a_rate_allows_a_burst_and_then_one_per_interval([[maybe_unused]] void **state) {
        struct rootless_rate rate = {.interval_us = 10, .burst = 3};
        uint64_t now = 1000;

        for (int i = 0; i < 3; i++)
                assert_true(rootless_rate_allows(&rate, now));
        assert_false(rootless_rate_allows(&rate, now));
        assert_false(rootless_rate_allows(&rate, now + 9));
        assert_true(rootless_rate_allows(&rate, now + 10));
        assert_false(rootless_rate_allows(&rate, now + 10));
        assert_int_equal(rate.suppressed, 3);
        for (int i = 0; i < 3; i++)
                assert_true(rootless_rate_allows(&rate, now + 1000));
        assert_false(rootless_rate_allows(&rate, now + 1000));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ranges_are_lists_of_ports),
                cmocka_unit_test(test_invalid_ranges_are_rejected),
                cmocka_unit_test(test_settings_come_from_options_then_variables),
                cmocka_unit_test(test_invalid_settings_are_rejected),
                cmocka_unit_test(test_the_manifest_grants_what_the_options_need),
                cmocka_unit_test(test_names_cannot_add_to_the_manifest),
                cmocka_unit_test(test_an_event_is_about_its_object),
                cmocka_unit_test(test_a_rate_allows_a_burst_and_then_one_per_interval),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
