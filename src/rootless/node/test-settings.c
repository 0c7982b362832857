/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "rootless/node/settings.h"

static const char *no_variable([[maybe_unused]] const char *name, [[maybe_unused]] void *userdata) {
        return nullptr;
}

/* Variables of the environment: only the one that the test names has a value. */
static const char *one_variable(const char *name, void *userdata) {
        return nd_streq(name, userdata) ? "/from/environment" : nullptr;
}

static void options_become_variables_of_the_unit([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = {};

        expect_ok(rootless_settings_format(
                &(struct rootless_settings) {.net = "none", .mtu = 1500, .data = "/d", .bind = "/a,/b:ro"}, no_variable,
                nullptr, &text));
        assert_string_equal(nd_text_get(&text),
                            "NODENS_NET=\"none\"\nNODENS_MTU=\"1500\"\nNODENS_DATA=\"/d\"\nNODENS_BIND=\"/a,/b:ro\"\n");
}

static void options_of_kubernetes_become_variables_too([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = {};
        struct rootless_settings given = {.join = "/k",
                                          .runtime = "containerd",
                                          .max_pods = 7,
                                          .taint = true,
                                          .no_cgroups = true,
                                          .server_tls_bootstrap = true,
                                          .inside = true};

        expect_ok(rootless_settings_format(&given, no_variable, nullptr, &text));
        assert_string_equal(nd_text_get(&text), "NODENS_MAX_PODS=\"7\"\nNODENS_TAINT=\"1\"\nNODENS_NO_CGROUPS=\"1\"\n"
                                                "NODENS_SERVER_TLS_BOOTSTRAP=\"1\"\nNODENS_INSIDE=\"1\"\nNODENS_JOIN=\"/k\"\n"
                                                "NODENS_RUNTIME=\"containerd\"\n");
        assert_true(rootless_settings_any(&given));
        assert_false(rootless_settings_any(&(struct rootless_settings) {.name = "n", .publish = "1:1"}));
        assert_true(rootless_settings_any(&(struct rootless_settings) {.taint = true}));
        assert_true(rootless_settings_any(&(struct rootless_settings) {.server_tls_bootstrap = true}));
}

/* Pairs of a name and its value, as the unit's environment file gives them. */
static const char *many_variables(const char *name, void *userdata) {
        for (const char **pair = userdata; *pair; pair += 2)
                if (nd_streq(*pair, name))
                        return pair[1];
        return nullptr;
}

static void the_environment_configures_kubernetes([[maybe_unused]] void **state) {
        const char *variables[] = {"HOME",          "/home/u", "NODENS_JOIN",       "/k", "NODENS_TAINT", "1",
                                   "NODENS_LABELS", "",        "NODENS_NO_CGROUPS", "no", nullptr};
        const char *wrong[] = {"HOME", "/home/u", "NODENS_TAINT", "maybe", nullptr};
        const char *relative[] = {"HOME", "/home/u", "NODENS_JOIN", "kubeconfig", nullptr};
        nd_cleanup(rootless_config_done) struct rootless_config config = {}, refused = {};
        struct rootless_settings given = {.name = "n"};

        expect_ok(rootless_config_resolve(&given, true, many_variables, (void *) variables, &config));
        assert_string_equal(config.join, "/k");
        assert_true(config.taint);
        assert_false(config.no_cgroups);
        assert_null(config.labels);
        expect_error(rootless_config_resolve(&given, true, many_variables, (void *) wrong, &refused), ND_INVALID,
                     "NODENS_TAINT 'maybe'");
        expect_error(rootless_config_resolve(&given, true, many_variables, (void *) relative, &refused), ND_INVALID,
                     "absolute");
}

static void an_ephemeral_node_has_no_data_directory_by_default([[maybe_unused]] void **state) {
        const char *variables[] = {"HOME", "/home/u", "NODENS_EPHEMERAL", "1", "NODENS_INSIDE", "yes", nullptr};
        nd_cleanup(rootless_config_done) struct rootless_config config = {}, given = {};

        expect_ok(rootless_config_resolve(&(struct rootless_settings) {.name = "n"}, true, many_variables, (void *) variables,
                                          &config));
        assert_null(config.data);
        assert_true(config.ephemeral && config.inside && !config.net_given);
        expect_ok(rootless_config_resolve(&(struct rootless_settings) {.name = "n", .data = "/d", .net = "none"}, true,
                                          many_variables, (void *) variables, &given));
        assert_string_equal(given.data, "/d");
        assert_true(given.net_given);
}

static void a_node_is_part_of_one_cluster([[maybe_unused]] void **state) {
        const char *variables[] = {"HOME", "/home/u", "NODENS_CONTROL_PLANE", "1", nullptr};
        nd_cleanup(rootless_config_done) struct rootless_config config = {}, refused = {};

        expect_ok(rootless_config_resolve(&(struct rootless_settings) {.name = "n", .api_port = "7443"}, true, many_variables,
                                          (void *) variables, &config));
        assert_true(config.control_plane && rootless_config_has_kubernetes(&config));
        assert_string_equal(config.api_port, "7443");
        expect_error(rootless_config_resolve(&(struct rootless_settings) {.name = "n", .join = "/k"}, true, many_variables,
                                             (void *) variables, &refused),
                     ND_INVALID, "exclude each other");
        expect_error(rootless_config_resolve(&(struct rootless_settings) {.name = "n", .net = "host"}, true, many_variables,
                                             (void *) variables, &refused),
                     ND_INVALID, "needs a network of the node");
}

static void without_options_nothing_is_written([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = {};

        expect_ok(rootless_settings_format(&(struct rootless_settings) {}, no_variable, nullptr, &text));
        assert_int_equal(text.length, 0);
}

static void an_option_takes_precedence_over_the_environment([[maybe_unused]] void **state) {
        nd_autotext struct nd_text both = {}, variable = {};
        char name[] = "NODENS_DATA";

        expect_ok(rootless_settings_format(&(struct rootless_settings) {.data = "/given"}, one_variable, name, &both));
        assert_string_equal(nd_text_get(&both), "NODENS_DATA=\"/given\"\n");
        expect_ok(rootless_settings_format(&(struct rootless_settings) {}, one_variable, name, &variable));
        assert_string_equal(nd_text_get(&variable), "NODENS_DATA=\"/from/environment\"\n");
}

static void characters_that_systemd_interprets_are_escaped([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = {};

        expect_ok(rootless_settings_format(&(struct rootless_settings) {.bind = "/a \"b\" $c `d` \\e 'f'"}, no_variable,
                                           nullptr, &text));
        assert_string_equal(nd_text_get(&text), "NODENS_BIND=\"/a \\\"b\\\" \\$c \\`d\\` \\\\e 'f'\"\n");
}

/* A line end would start a variable of its own, LD_PRELOAD for instance. */
static void values_that_a_line_cannot_hold_are_refused([[maybe_unused]] void **state) {
        nd_autotext struct nd_text line = {}, bytes = {};

        expect_error(rootless_settings_format(&(struct rootless_settings) {.bind = "/a\nLD_PRELOAD=/b"}, no_variable, nullptr,
                                              &line),
                     ND_INVALID, "control character");
        expect_error(rootless_settings_format(&(struct rootless_settings) {.data = "/\xff"}, no_variable, nullptr, &bytes),
                     ND_INVALID, "UTF-8");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(options_become_variables_of_the_unit),
                cmocka_unit_test(options_of_kubernetes_become_variables_too),
                cmocka_unit_test(the_environment_configures_kubernetes),
                cmocka_unit_test(an_ephemeral_node_has_no_data_directory_by_default),
                cmocka_unit_test(a_node_is_part_of_one_cluster),
                cmocka_unit_test(without_options_nothing_is_written),
                cmocka_unit_test(an_option_takes_precedence_over_the_environment),
                cmocka_unit_test(characters_that_systemd_interprets_are_escaped),
                cmocka_unit_test(values_that_a_line_cannot_hold_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
