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
                cmocka_unit_test(without_options_nothing_is_written),
                cmocka_unit_test(an_option_takes_precedence_over_the_environment),
                cmocka_unit_test(characters_that_systemd_interprets_are_escaped),
                cmocka_unit_test(values_that_a_line_cannot_hold_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
