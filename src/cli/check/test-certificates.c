/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#include "cli/check/certificates.h"

#define PEM "-----BEGIN CERTIFICATE-----\n"

static void files_that_a_hosts_file_names_are_found([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings named = {};

        cli_certificates_named("server = \"https://registry.example/x.pem\"\n# ca = \"/comment.crt\"\n"
                               "[host.'https://mirror']\n  ca = [\"a.crt\", '/etc/b.pem'] # \"c.crt\"\n"
                               "  client = [[\"d.cert\", \"d.key\"]]\n  x = \"escape\\\"d.crt\"\n  broken = \"open.crt\n",
                               &named);
        assert_int_equal(named.count, 4);
        assert_string_equal(named.items[0], "a.crt");
        assert_string_equal(named.items[1], "/etc/b.pem");
        assert_string_equal(named.items[2], "d.cert");
        assert_string_equal(named.items[3], "d.key");
}

static void readable_files_are_accepted([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        size_t registries = 0;

        expect_ok(cli_certificates_check("/nonexistent", &registries));
        assert_int_equal(registries, 0);
        scratch_text(root, "README", "a file beside the registries");
        scratch_mkdir(root, "a.example");
        scratch_text(root, "a.example/hosts.toml", "ca = 'ca.crt'\n");
        scratch_text(root, "a.example/ca.crt", PEM);
        scratch_text(root, "a.example/unused.crt", "not read");
        scratch_mkdir(root, "b.example");
        scratch_text(root, "b.example/ca.crt", PEM);
        scratch_text(root, "b.example/notes.txt", "not a certificate");
        expect_ok(cli_certificates_check(root, &registries));
        assert_int_equal(registries, 2);
}

static void a_file_that_cannot_be_used_is_named([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_autofree char *link = nd_format("%s/b.example/ca.crt", root);
        size_t registries = 0;

        scratch_mkdir(root, "b.example");
        assert_return_code(symlink("/nonexistent/ca.crt", link), errno);
        expect_error(cli_certificates_check(root, &registries), ND_NOT_FOUND, "b.example/ca.crt");
        scratch_mkdir(root, "a.example");
        scratch_text(root, "a.example/hosts.toml", "ca = 'missing.crt'\n");
        expect_error(cli_certificates_check(root, &registries), ND_NOT_FOUND, "a.example/missing.crt");
        scratch_text(root, "a.example/missing.crt", "binary");
        expect_error(cli_certificates_check(root, &registries), ND_INVALID, "no PEM certificate or key in '");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(files_that_a_hosts_file_names_are_found),
                cmocka_unit_test(readable_files_are_accepted),
                cmocka_unit_test(a_file_that_cannot_be_used_is_named),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
