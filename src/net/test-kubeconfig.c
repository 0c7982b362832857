/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kubeconfig.h"

#include <unit/expect.h>
#include <unit/scratch.h>

static const char whole[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "current-context: here\n"
                            "clusters:\n"
                            "- name: c1\n"
                            "  cluster:\n"
                            "    server: https://10.0.0.1:6443/\n"
                            "    certificate-authority-data: Q0E=\n"
                            "    tls-server-name: kubernetes\n"
                            "- name: c2\n"
                            "  cluster: {server: 'https://other', certificate-authority: ca.pem}\n"
                            "users:\n"
                            "- name: u1\n"
                            "  user: {client-certificate-data: Q1JU, client-key-data: S0VZ}\n"
                            "- name: u2\n"
                            "  user: {tokenFile: token}\n"
                            "- name: u3\n"
                            "  user: {exec: {command: aws}}\n"
                            "- name: u4\n"
                            "  user: {client-certificate-data: Q1JU}\n"
                            "contexts:\n"
                            "- name: here\n"
                            "  context: {cluster: c1, user: u1, namespace: n1}\n"
                            "- name: there\n"
                            "  context: {cluster: c2, user: u2}\n"
                            "- name: plugin\n"
                            "  context: {cluster: c2, user: u3}\n"
                            "- name: half\n"
                            "  context: {cluster: c2, user: u4}\n"
                            "- name: nobody\n"
                            "  context: {cluster: c2, user: none}\n";

static void the_current_context_is_taken([[maybe_unused]] void **state) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};

        expect_ok(nd_kubeconfig_parse(whole, strlen(whole), nullptr, &config));
        assert_string_equal(config.server, "https://10.0.0.1:6443");
        assert_string_equal(config.ca, "CA");
        assert_string_equal(config.certificate, "CRT");
        assert_string_equal(config.key, "KEY");
        assert_string_equal(config.tls_server_name, "kubernetes");
        assert_string_equal(config.namespace, "n1");
        assert_null(config.token);
        assert_false(config.insecure);
}

static void paths_are_relative_to_the_kubeconfig([[maybe_unused]] void **state) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        scratch_directory directory = scratch_make();
        bool has_context = false;
        nd_autofree char *path = nd_format("%s/config", directory), *token = nd_format("%s/token", directory);

        scratch_text(directory, "config", whole);
        expect_error(nd_kubeconfig_load(path, "there", &config), ND_NOT_FOUND, "ca.pem");
        scratch_text(directory, "ca.pem", "PEM");
        scratch_text(directory, "token", "secret");
        expect_ok(nd_kubeconfig_has_context(path, "there", &has_context));
        assert_true(has_context);
        expect_ok(nd_kubeconfig_has_context(path, "nowhere", &has_context));
        assert_false(has_context);
        expect_ok(nd_kubeconfig_load(path, "there", &config));
        assert_string_equal(config.ca, "PEM");
        assert_string_equal(config.token, "secret");
        assert_string_equal(config.token_file, token);
        assert_string_equal(config.file, path);
}

static void unsupported_users_and_contexts_are_refused_with_the_reason([[maybe_unused]] void **state) {
        struct nd_kubeconfig config;

        expect_error(nd_kubeconfig_parse(whole, strlen(whole), "plugin", &config), ND_UNIMPLEMENTED,
                     "'exec' of a user is not supported");
        expect_error(nd_kubeconfig_parse(whole, strlen(whole), "half", &config), ND_INVALID, "must both be given");
        expect_error(nd_kubeconfig_parse(whole, strlen(whole), "nobody", &config), ND_NOT_FOUND, "no user 'none'");
        expect_error(nd_kubeconfig_parse(whole, strlen(whole), "nowhere", &config), ND_NOT_FOUND, "no context 'nowhere'");
        expect_error(nd_kubeconfig_parse("{}", 2, nullptr, &config), ND_INVALID, "no current-context");
        expect_error(nd_kubeconfig_parse("[]", 2, nullptr, &config), ND_INVALID, "not a kubeconfig");
}

static void a_pods_configuration_comes_from_files_and_variables([[maybe_unused]] void **state) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        scratch_directory directory = scratch_make();

        (void) unsetenv("KUBERNETES_SERVICE_HOST");
        expect_error(nd_kubeconfig_of_pod(directory, &config), ND_NOT_FOUND, "not in a pod");
        (void) setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
        (void) setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        scratch_text(directory, "token", "t");
        scratch_text(directory, "ca.crt", "c");
        scratch_text(directory, "namespace", "ns");
        expect_ok(nd_kubeconfig_of_pod(directory, &config));
        assert_string_equal(config.server, "https://[fd00::1]:443");
        assert_string_equal(config.token, "t");
        assert_string_equal(config.namespace, "ns");
        (void) unsetenv("KUBERNETES_SERVICE_HOST");
}

static void a_tokens_expiry_is_read([[maybe_unused]] void **state) {
        /* {"aud":["x"],"exp":1794800000}, once with characters of the URL alphabet before it */
        assert_int_equal(nd_kubeconfig_token_expiry("e30.eyJhdWQiOlsieCJdLCJleHAiOjE3OTQ4MDAwMDB9.c2ln"), 1794800000);
        assert_int_equal(nd_kubeconfig_token_expiry("e30.eyJhIjoiw7_Dvj8-IiwiZXhwIjoxNzk0ODAwMDAwfQ.c2ln"), 1794800000);
        assert_int_equal(nd_kubeconfig_token_expiry(""), 0);
        assert_int_equal(nd_kubeconfig_token_expiry("a.b"), 0);
        assert_int_equal(nd_kubeconfig_token_expiry("..."), 0);
        assert_int_equal(nd_kubeconfig_token_expiry("e30.e30.x"), 0);
        assert_int_equal(nd_kubeconfig_token_expiry("e30.eyJleHAiOi0xfQ.x"), 0); /* {"exp":-1} */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_current_context_is_taken),
                cmocka_unit_test(paths_are_relative_to_the_kubeconfig),
                cmocka_unit_test(unsupported_users_and_contexts_are_refused_with_the_reason),
                cmocka_unit_test(a_pods_configuration_comes_from_files_and_variables),
                cmocka_unit_test(a_tokens_expiry_is_read),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
