/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/config.h"

#include <unit/expect.h>

static struct nd_error *parse(const char *text, struct guard_config *config) {
        guard_config_init(config);
        return guard_config_parse(text, strlen(text), config);
}

static void every_key_is_taken([[maybe_unused]] void **state) {
        nd_cleanup(guard_config_done) struct guard_config config = {};

        expect_ok(parse("address: '::'\nport: 1234\ncertificate: /c\nkey: /k\nkubeconfig: /kc\ngroup: security.openshift.io\n"
                        "idsPerPod: 131072\nconnections: 50\nuserNamespacesHostNetwork: true\ndefaultMode: enforce\n",
                        &config));
        assert_string_equal(config.address, "::");
        assert_int_equal(config.port, 1234);
        assert_string_equal(config.kubeconfig, "/kc");
        assert_string_equal(config.group, "security.openshift.io");
        assert_int_equal(config.ids_per_pod, 131072);
        assert_true(config.host_network);
        assert_string_equal(config.default_mode, "enforce");
}

static void mistakes_are_named([[maybe_unused]] void **state) {
        static const struct {
                const char *text, *words;
        } bad[] = {
                {"prot: 1", "no key 'prot'"},
                {"port: 0", "port must be a number from 1 to 65535"},
                {"certificate: tls.crt", "certificate must be an absolute path"},
                {"defaultMode: audit", "defaultMode must be off, warn or enforce"},
                {"userNamespacesHostNetwork: 1", "must be true or false"},
                {"- a", "not a list of keys and values"},
                {"group: 5", "group must be a text"},
        };

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                nd_cleanup(guard_config_done) struct guard_config config = {};

                expect_error(parse(bad[i].text, &config), ND_INVALID, bad[i].words);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_key_is_taken),
                cmocka_unit_test(mistakes_are_named),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
