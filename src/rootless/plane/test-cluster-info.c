/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "rootless/plane/cluster-info.h"

#define TOKEN "abcdef.0123456789abcdef"
#define KUBECONFIG                                                                                                            \
        "apiVersion: v1\\nclusters:\\n- name: \\\"\\\"\\n  cluster: {server: \\\"https://10.0.0.1:6443\\\", "                 \
        "certificate-authority-data: UEVN}\\n"
/* Made with another implementation of HMAC. */
#define HEADER "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9"
#define SIGNATURE "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..C0E0clOEy0Bzov-33FDFmdq3z2PMu11htWlEI778sSg"
#define OBJECT(kubeconfig, signature)                                                                                         \
        "{\"data\":{\"kubeconfig\":\"" kubeconfig "\",\"jws-kubeconfig-abcdef\":\"" signature "\"}}"

static struct nd_error *parse(const char *object, const char *token, struct rootless_cluster_info *ret) {
        return rootless_cluster_info_parse(object, strlen(object), token, ret);
}

static void an_object_that_the_token_signed_is_accepted([[maybe_unused]] void **state) {
        nd_cleanup(rootless_cluster_info_done) struct rootless_cluster_info info = {};

        expect_ok(parse(OBJECT(KUBECONFIG, SIGNATURE), TOKEN, &info));
        assert_string_equal(info.ca, "PEM");
}

static void another_text_or_secret_is_refused([[maybe_unused]] void **state) {
        struct rootless_cluster_info info = {};

        expect_error(parse(OBJECT("x" KUBECONFIG, SIGNATURE), TOKEN, &info), ND_UNAUTHENTICATED, "does not know the token");
        expect_error(parse(OBJECT(KUBECONFIG, SIGNATURE), "abcdef.0123456789abcdee", &info), ND_UNAUTHENTICATED,
                     "does not know the token");
        expect_error(parse(OBJECT(KUBECONFIG, SIGNATURE), "abcdeg.0123456789abcdef", &info), ND_UNAUTHENTICATED,
                     "no signature of token 'abcdeg'");
}

static void other_algorithms_keys_and_forms_are_refused([[maybe_unused]] void **state) {
        static const char *const objects[] = {OBJECT(KUBECONFIG, "eyJhbGciOiJub25lIiwia2lkIjoiYWJjZGVmIn0.."),
                                              OBJECT(KUBECONFIG, "eyJhbGciOiJIUzI1NiIsImtpZCI6Inp6enp6eiJ9..AAAA"),
                                              OBJECT(KUBECONFIG, HEADER ".AAAA.AAAA"),
                                              OBJECT(KUBECONFIG, HEADER ".."),
                                              OBJECT(KUBECONFIG, "."),
                                              OBJECT(KUBECONFIG, "")};
        struct rootless_cluster_info info = {};

        for (size_t i = 0; i < nd_count_of(objects); i++) {
                nd_autoerror struct nd_error *error = parse(objects[i], TOKEN, &info);

                assert_non_null(error);
        }
}

/* The signed payload ends where the text does: what follows a null byte would not be signed. */
static void a_kubeconfig_with_a_null_byte_is_refused([[maybe_unused]] void **state) {
        struct rootless_cluster_info info = {};

        expect_error(parse(OBJECT(KUBECONFIG "\\u0000x", SIGNATURE), TOKEN, &info), ND_INVALID, "no kubeconfig");
}

static void tokens_and_hashes_have_one_form([[maybe_unused]] void **state) {
        static const char *const wrong[] = {"",
                                            "abcdef",
                                            "abcdef.0123456789abcde",
                                            "abcdef.0123456789ABCDEF",
                                            "abcdef-0123456789abcdef",
                                            "abcdef.0123456789abcdef0",
                                            "../../.0123456789abcdef"};

        assert_true(rootless_token_valid(TOKEN));
        for (size_t i = 0; i < nd_count_of(wrong); i++)
                assert_false(rootless_token_valid(wrong[i]));
        assert_true(rootless_hash_valid("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
        assert_false(rootless_hash_valid("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"));
        assert_false(rootless_hash_valid("sha1:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_object_that_the_token_signed_is_accepted),
                cmocka_unit_test(another_text_or_secret_is_refused),
                cmocka_unit_test(other_algorithms_keys_and_forms_are_refused),
                cmocka_unit_test(a_kubeconfig_with_a_null_byte_is_refused),
                cmocka_unit_test(tokens_and_hashes_have_one_form),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
