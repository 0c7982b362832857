/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/config.h"

#include <unit/expect.h>

static struct nd_error *parse(const char *text, struct guard_config *config) {
        guard_config_init(GUARD_ROLE_ADMISSION, config);
        return guard_config_parse(text, strlen(text), config);
}

static void every_key_is_read([[maybe_unused]] void **state) {
        nd_cleanup(guard_config_done) struct guard_config config = {};

        expect_ok(parse(
                "address: '::'\nport: 1234\ncertificate: /c\nkey: /k\nkubeconfig: /kc\ngroup: security.openshift.io\n"
                "clientCA: /ca\nclientNames: [api-1, api-2]\nmetricsNames: [prometheus]\nidsPerPod: 131072\nconnections: 50\ndrainSeconds: 7\nuserNamespacesHostNetwork: true\ndefaultMode: enforce\npodSecurityLabelSync: dry-run\n"
                "podSecurity: {labels: standard, defaults: {enforce: baseline, warn-version: v1.30}, exemptions: "
                "{usernames: [root], namespaces: [kube-system], runtimeClasses: [vm]}}\n",
                &config));
        assert_string_equal(config.address, "::");
        assert_int_equal(config.port, 1234);
        assert_string_equal(config.client_ca, "/ca");
        assert_int_equal(config.client_names.count, 2); /* instead of the default */
        assert_string_equal(config.client_names.items[1], "api-2");
        assert_string_equal(config.metrics_names.items[0], "prometheus");
        assert_string_equal(config.kubeconfig, "/kc");
        assert_string_equal(config.group, "security.openshift.io");
        assert_int_equal(config.ids_per_pod, 131072);
        assert_int_equal(config.drain_seconds, 7);
        assert_true(config.host_network);
        assert_string_equal(config.default_mode, "enforce");
        assert_true(guard_config_computes_labels(&config) && !guard_config_writes_labels(&config));
        assert_string_equal(config.standards.prefix, "pod-security.kubernetes.io/");
        assert_int_equal(config.standards.defaults.enforce.level, ND_LEVEL_BASELINE);
        assert_int_equal(config.standards.defaults.warn.version.minor, 30);
        assert_string_equal(config.standards.users.items[0], "root");
        assert_true(guard_standards_exempt_class(&config.standards, "vm"));
}

static void clients_need_certificates_unless_that_is_switched_off([[maybe_unused]] void **state) {
        nd_cleanup(guard_config_done) struct guard_config with = {}, without = {};

        expect_ok(parse("clientCA: /ca", &with));
        assert_string_equal(with.client_names.items[0], GUARD_CLIENT_NAME);
        expect_ok(parse("clientCA: none", &without));
        assert_true(guard_config_authenticates(&with));
        assert_false(guard_config_authenticates(&without));
        assert_string_equal(without.client_ca, GUARD_NO_AUTHORITY);
}

static void errors_name_the_key([[maybe_unused]] void **state) {
        static const struct {
                const char *text, *expected;
        } bad[] = {
                {"prot: 1", "unknown key 'prot'"},
                {"port: 0", "port must be a number from 1 to 65535"},
                {"drainSeconds: 61", "drainSeconds must be a number from 0 to 60"},
                {"certificate: tls.crt", "certificate must be an absolute path"},
                {"clientCA: ca.crt", "clientCA must be an absolute path"},
                {"clientNames: api", "clientNames must be a list"},
                {"clientNames: ['']", "clientNames must be a list of names"},
                {"clientCA: /ca\nclientNames: []", "clientNames is empty"},
                {"defaultMode: audit", "defaultMode must be off, warn or enforce"},
                {"podSecurityLabelSync: dry", "podSecurityLabelSync must be off, dry-run or on"},
                {"userNamespacesHostNetwork: 1", "must be true or false"},
                {"- a", "not a list of keys and values"},
                {"group: 5", "group must be a string"},
                {"podSecurity: 1", "podSecurity must be a mapping"},
                {"podSecurity: {label: own}", "unknown key podSecurity.label;"},
                {"podSecurity: {labels: mine}", "podSecurity.labels must be own, standard or off"},
                {"podSecurity: {defaults: {enforce: strict}}", "podSecurity.defaults: 'enforce: strict' is neither"},
                {"podSecurity: {exemptions: {users: []}}", "unknown key podSecurity.exemptions.users"},
                {"podSecurity: {exemptions: {usernames: a}}", "must be a list of names"},
        };

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                nd_cleanup(guard_config_done) struct guard_config config = {};

                expect_error(parse(bad[i].text, &config), ND_INVALID, bad[i].expected);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_key_is_read),
                cmocka_unit_test(clients_need_certificates_unless_that_is_switched_off),
                cmocka_unit_test(errors_name_the_key),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
