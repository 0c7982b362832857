/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>

#include <unit/scratch.h>

#include "net/kubeconfig.h"
#include "rootless/plane/certificate.h"
#include "rootless/plane/certificates.h"
#include "rootless/plane/directory.h"
#include "sys/file.h"

static struct rootless_certificates_settings settings(const char *directory) {
        return (struct rootless_certificates_settings) {.directory = directory,
                                                        .address = "10.1.2.3",
                                                        .listen = "127.0.0.1",
                                                        .server = "https://127.0.0.1:6443",
                                                        .node_name = "laptop"};
}

static char *read_file(const char *directory, const char *name) {
        nd_autoclose int fd = -EBADF;
        char *text = nullptr;

        expect_ok(rootless_plane_open(directory, false, &fd));
        expect_ok(rootless_plane_read(fd, name, &text));
        assert_non_null(text);
        return text;
}

static void parse_file(const char *directory, const char *name, gnutls_x509_crt_t *ret) {
        nd_autofree char *text = read_file(directory, name);

        expect_ok(rootless_certificate_parse(text, ret));
}

static void certificates_are_made_once_and_kept([[maybe_unused]] void **state) {
        static const char *const files[] = {"ca.crt",           "ca.key",          "apiserver.crt",
                                            "admin.kubeconfig", "node.kubeconfig", "sa.key"};
        scratch_directory top = scratch_make();
        nd_autofree char *directory = nd_format("%s/plane", top);
        struct rootless_certificates_settings given = settings(directory);
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autofree char *path = nd_format("%s/node.kubeconfig", directory);
        char *before[nd_count_of(files)];

        expect_ok(rootless_certificates_ensure(&given));
        for (size_t i = 0; i < nd_count_of(files); i++)
                before[i] = read_file(directory, files[i]);
        expect_ok(rootless_certificates_ensure(&given));
        for (size_t i = 0; i < nd_count_of(files); i++) {
                nd_autofree char *after = read_file(directory, files[i]);

                assert_string_equal(before[i], after);
                free(before[i]);
        }
        expect_ok(nd_kubeconfig_load(path, "controller", &config));
        assert_string_equal(config.server, "https://127.0.0.1:6443");
}

static void another_address_renews_the_servers_certificate_with_the_same_key([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_autofree char *directory = nd_format("%s/plane", top), *key = nullptr, *same = nullptr;
        struct rootless_certificates_settings given = settings(directory);
        nd_cleanup(rootless_certificate_done) struct rootless_certificate before = {}, after = {};

        expect_ok(rootless_certificates_ensure(&given));
        key = read_file(directory, "apiserver.key");
        parse_file(directory, "apiserver.crt", &before.certificate);
        assert_false(gnutls_x509_crt_check_hostname(before.certificate, "10.9.9.9"));
        given.address = "10.9.9.9";
        expect_ok(rootless_certificates_ensure(&given));
        same = read_file(directory, "apiserver.key");
        parse_file(directory, "apiserver.crt", &after.certificate);
        assert_true(gnutls_x509_crt_check_hostname(after.certificate, "10.9.9.9"));
        assert_true(gnutls_x509_crt_check_hostname(after.certificate, "kubernetes.default.svc"));
        assert_string_equal(key, same);
}

static void a_certificate_is_renewed_when_two_thirds_of_its_time_have_passed([[maybe_unused]] void **state) {
        nd_cleanup(rootless_certificate_done) struct rootless_certificate ca = {}, leaf = {}, other = {};
        struct rootless_certificate_plan authority = {.name = "kubernetes", .authority = true, .seconds = 30000},
                                         client = {.name = "a", .organization = "g", .seconds = 3000}, renamed = client;
        time_t now = time(nullptr);

        expect_ok(rootless_certificate_key_make(&ca.key));
        expect_ok(rootless_certificate_sign(&authority, ca.key, nullptr, &ca.certificate));
        expect_ok(rootless_certificate_key_make(&other.key));
        expect_ok(rootless_certificate_sign(&authority, other.key, nullptr, &other.certificate));
        expect_ok(rootless_certificate_key_make(&leaf.key));
        expect_ok(rootless_certificate_sign(&client, leaf.key, &ca, &leaf.certificate));
        assert_true(rootless_certificate_fits(&authority, &ca, nullptr, now));
        assert_true(rootless_certificate_fits(&client, &leaf, &ca, now));
        assert_true(rootless_certificate_fits(&client, &leaf, &ca, now + 1900));
        assert_false(rootless_certificate_fits(&client, &leaf, &ca, now + 2100));
        assert_false(rootless_certificate_fits(&client, &leaf, &other, now));
        renamed.name = "b";
        assert_false(rootless_certificate_fits(&renamed, &leaf, &ca, now));
        renamed = client;
        renamed.organization = nullptr;
        assert_false(rootless_certificate_fits(&renamed, &leaf, &ca, now));
}

/* A directory or file that others can read, or that is a link, is not used and not replaced. */
static void unsafe_files_are_refused([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_autofree char *directory = nd_format("%s/plane", top), *key = nd_format("%s/ca.key", directory);
        struct rootless_certificates_settings given = settings(directory);

        expect_ok(rootless_certificates_ensure(&given));
        assert_int_equal(chmod(key, 0644), 0);
        expect_error(rootless_certificates_ensure(&given), ND_DENIED, "'ca.key' must be a file");
        assert_int_equal(unlink(key), 0);
        expect_error(rootless_certificates_ensure(&given), ND_DATA_LOSS, "'ca.key' is not");
        assert_int_equal(symlink("/etc/hostname", key), 0);
        expect_error(rootless_certificates_ensure(&given), ND_DENIED, "'ca.key' must be a file");
        assert_int_equal(chmod(directory, 0755), 0);
        expect_error(rootless_certificates_ensure(&given), ND_DENIED, "chmod 0700");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(certificates_are_made_once_and_kept),
                cmocka_unit_test(another_address_renews_the_servers_certificate_with_the_same_key),
                cmocka_unit_test(a_certificate_is_renewed_when_two_thirds_of_its_time_have_passed),
                cmocka_unit_test(unsafe_files_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
