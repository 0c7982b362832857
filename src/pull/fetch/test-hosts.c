/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/hosts.h"

#include <unit/expect.h>
#include <unit/scratch.h>

#include "base/text.h"

static struct nd_error *parse(const char *text, struct pull_hosts *ret) {
        return pull_hosts_parse(text, strlen(text), "registry.example:5000", "/etc/hosts.d", ret);
}

static void mirrors_come_first_and_the_server_last([[maybe_unused]] void **state) {
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

        expect_ok(parse("server = \"https://upstream.example\"\n"
                        "[host.\"http://mirror.example:80/prefix/\"]\n  capabilities = [\"pull\"]\n  skip_verify = true\n"
                        "[host.\"https://other.example/v2/x\"]\n  override_path = true\n  ca = \"ca.pem\"\n"
                        "  client = [[\"/c.pem\", \"k.pem\"]]\n  dial_timeout = \"1m2s\"\n"
                        "  [host.\"https://other.example/v2/x\".header]\n    x-one = [\"a\", \"b\"]\n",
                        &hosts));
        assert_int_equal(hosts.count, 3);
        assert_string_equal(hosts.items[0].url, "http://mirror.example:80/prefix/v2");
        assert_int_equal(hosts.items[0].capabilities, HOST_PULL);
        assert_true(hosts.items[0].skip_verify);
        assert_string_equal(hosts.items[1].url, "https://other.example/v2/x");
        assert_string_equal(hosts.items[1].ca.items[0], "/etc/hosts.d/ca.pem");
        assert_string_equal(hosts.items[1].client.items[1], "/etc/hosts.d/k.pem");
        assert_int_equal(hosts.items[1].headers.count, 2);
        assert_string_equal(hosts.items[1].headers.items[1], "x-one: b");
        assert_int_equal(hosts.items[1].dial_seconds, 62);
        assert_string_equal(hosts.items[2].url, "https://upstream.example/v2");
        assert_true(hosts.items[2].upstream && !hosts.items[0].upstream);
}

static void without_a_server_the_registry_is_the_last([[maybe_unused]] void **state) {
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

        expect_ok(parse("[host.\"mirror.example\"]\n", &hosts));
        assert_string_equal(hosts.items[0].url, "https://mirror.example/v2");
        assert_string_equal(hosts.items[1].url, "https://registry.example:5000/v2");
}

static void a_server_with_the_address_of_a_mirror_is_one_server([[maybe_unused]] void **state) {
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

        expect_ok(parse("server = \"https://registry.example:5000\"\n"
                        "[host.\"https://Registry.example:5000/\"]\n  ca = \"/ca.pem\"\n[host.\"https://b.example\"]\n",
                        &hosts));
        assert_int_equal(hosts.count, 2);
        assert_string_equal(hosts.items[0].url, "https://registry.example:5000/v2");
        assert_string_equal(hosts.items[0].ca.items[0], "/ca.pem");
        assert_true(hosts.items[0].upstream && !hosts.items[1].upstream);
}

static void a_server_that_differs_from_its_mirror_stays([[maybe_unused]] void **state) {
        static const char *const texts[] = {
                "ca = \"/own.pem\"\n[host.\"https://registry.example:5000\"]\n",
                "[host.\"https://registry.example:5000\"]\n  capabilities = [\"pull\"]\n",
                "[host.\"https://registry.example:5000/x\"]\n",
                "[host.\"http://registry.example:5000\"]\n",
                /* credentials must not go to a server that is not verified */
                "[host.\"https://registry.example:5000\"]\n  skip_verify = true\n",
        };

        for (size_t i = 0; i < nd_count_of(texts); i++) {
                nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

                expect_ok(parse(texts[i], &hosts));
                assert_int_equal(hosts.count, 2);
                assert_true(hosts.items[1].upstream && !hosts.items[0].upstream);
        }
}

static void docker_io_and_localhost_are_special([[maybe_unused]] void **state) {
        static const struct {
                const char *registry, *url;
        } cases[] = {
                {"docker.io", "https://registry-1.docker.io/v2"},  {"localhost", "https://localhost/v2"},
                {"localhost:5000", "http://localhost:5000/v2"},    {"127.0.0.1:5000", "http://127.0.0.1:5000/v2"},
                {"localhost:443", "https://localhost:443/v2"},     {"[::1]:5000", "http://[::1]:5000/v2"},
                {"registry.k8s.io", "https://registry.k8s.io/v2"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

                expect_ok(pull_hosts_load(nullptr, cases[i].registry, &hosts));
                assert_string_equal(hosts.items[0].url, cases[i].url);
        }
}

static void errors_name_the_invalid_setting([[maybe_unused]] void **state) {
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"server = 1", "server"},
                {"server = \"https://user:word@x\"", "server"},
                {"[host.\"https://x\"]\ncapabilities = [\"fly\"]", "capabilities"},
                {"[host.\"https://x\"]\nca = 1", "ca"},
                {"[host.\"https://x\"]\nclient = [[\"a\"]]", "client"},
                {"[host.\"https://x\"]\nskip_verify = \"yes\"", "skip_verify"},
                {"[host.\"https://x\"]\ndial_timeout = \"soon\"", "dial_timeout"},
                {"[host.\"https://x\".header]\nk = \"a\\r\\nb\"", "header"},
                {"[host.\"https://x?y\"]", "address"},
                {"host = 1", "host"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

                expect_error(parse(cases[i].text, &hosts), ND_INVALID, cases[i].words);
        }
}

static void a_password_in_an_address_is_not_repeated([[maybe_unused]] void **state) {
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};
        nd_autoerror struct nd_error *error = parse("[host.\"https://user:word@x\"]", &hosts);

        assert_non_null(error);
        assert_null(strstr(nd_error_text(error), "word"));
}

static void the_directory_is_searched_as_in_containerd([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();

        scratch_mkdir(path, "_default");
        scratch_text(path, "_default/hosts.toml", "server = \"https://fallback.example\"\n");
        scratch_mkdir(path, "a.example_5000_");
        scratch_text(path, "a.example_5000_/hosts.toml", "server = \"https://escaped.example\"\n");
        scratch_mkdir(path, "b.example");
        scratch_text(path, "b.example/ca.crt", "-----BEGIN CERTIFICATE-----\n");
        static const struct {
                const char *registry, *url;
        } cases[] = {
                {"a.example:5000", "https://escaped.example/v2"},
                {"a.example", "https://fallback.example/v2"},
                {"b.example", "https://b.example/v2"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

                expect_ok(pull_hosts_load(path, cases[i].registry, &hosts));
                assert_string_equal(hosts.items[hosts.count - 1].url, cases[i].url);
                assert_true((hosts.items[0].ca_pem != nullptr) == nd_streq(cases[i].registry, "b.example"));
        }
}

static void a_missing_certificate_is_an_error([[maybe_unused]] void **state) {
        scratch_directory path = scratch_make();
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};

        scratch_mkdir(path, "a.example");
        scratch_text(path, "a.example/hosts.toml", "ca = \"missing.pem\"\n");
        expect_error(pull_hosts_load(path, "a.example", &hosts), ND_NOT_FOUND, "missing.pem");
}

static void only_addresses_of_the_loopback_are_local([[maybe_unused]] void **state) {
        assert_true(pull_host_is_local("localhost"));
        assert_true(pull_host_is_local("localhost:5000"));
        assert_true(pull_host_is_local("127.0.0.1"));
        assert_true(pull_host_is_local("127.8.9.10:5000"));
        assert_true(pull_host_is_local("[::1]:5000"));
        assert_false(pull_host_is_local("127.example.com"));
        assert_false(pull_host_is_local("127.0.0.1.example.com:5000"));
        assert_false(pull_host_is_local("localhost.example.com"));
        assert_false(pull_host_is_local("128.0.0.1"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_addresses_of_the_loopback_are_local),
                cmocka_unit_test(mirrors_come_first_and_the_server_last),
                cmocka_unit_test(without_a_server_the_registry_is_the_last),
                cmocka_unit_test(a_server_with_the_address_of_a_mirror_is_one_server),
                cmocka_unit_test(a_server_that_differs_from_its_mirror_stays),
                cmocka_unit_test(docker_io_and_localhost_are_special),
                cmocka_unit_test(errors_name_the_invalid_setting),
                cmocka_unit_test(a_password_in_an_address_is_not_repeated),
                cmocka_unit_test(the_directory_is_searched_as_in_containerd),
                cmocka_unit_test(a_missing_certificate_is_an_error),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
