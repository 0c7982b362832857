/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/server/issue.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <time.h>

#include <unit/expect.h>

#include "net/certificate-expiry.h"

static gnutls_x509_crt_t parse(const char *pem) {
        gnutls_datum_t text = {.data = (unsigned char *) pem, .size = (unsigned) strlen(pem)};
        gnutls_x509_crt_t certificate = nullptr;

        assert_int_equal(gnutls_x509_crt_init(&certificate), 0);
        assert_int_equal(gnutls_x509_crt_import(certificate, &text, GNUTLS_X509_FMT_PEM), 0);
        return certificate;
}

/* Whether a client that trusts the authority accepts the server under this name. */
static bool accepts(const char *ca, const char *server, const char *name) {
        gnutls_typed_vdata_st expected[] = {
                {.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *) name},
                {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *) GNUTLS_KP_TLS_WWW_SERVER},
        };
        gnutls_x509_crt_t authority = parse(ca), certificate = parse(server);
        gnutls_x509_trust_list_t trust = nullptr;
        unsigned status = 0;

        assert_int_equal(gnutls_x509_trust_list_init(&trust, 0), 0);
        assert_int_equal(gnutls_x509_trust_list_add_cas(trust, &authority, 1, 0), 1);
        assert_int_equal(gnutls_x509_trust_list_verify_crt2(trust, &certificate, 1, expected, 2, 0, &status, nullptr), 0);
        gnutls_x509_trust_list_deinit(trust, 1);
        gnutls_x509_crt_deinit(certificate);
        return status == 0;
}

static void clients_accept_each_name_and_no_other([[maybe_unused]] void **state) {
        static const char *const names[] = {"guard.example", "127.0.0.1", "fd00::1"};
        const struct nd_strings list = {.items = (char **) (void *) names, .count = nd_count_of(names)};
        nd_cleanup(guard_issued_done) struct guard_issued ca = {}, other = {}, server = {};

        expect_ok(guard_issue_authority(3650, &ca));
        expect_ok(guard_issue_authority(3650, &other));
        expect_ok(guard_issue_server(&ca, &list, 365, &server));
        for (size_t i = 0; i < nd_count_of(names); i++)
                assert_true(accepts(ca.certificate, server.certificate, names[i]));
        assert_false(accepts(ca.certificate, server.certificate, "other.example"));
        assert_false(accepts(ca.certificate, server.certificate, "127.0.0.2"));
        assert_false(accepts(other.certificate, server.certificate, "guard.example"));
}

static void a_certificate_does_not_outlive_its_authority([[maybe_unused]] void **state) {
        static const char *const names[] = {"guard.example"};
        const struct nd_strings list = {.items = (char **) (void *) names, .count = 1};
        nd_cleanup(guard_issued_done) struct guard_issued ca = {}, server = {};
        time_t of_ca = 0, of_server = 0;

        expect_ok(guard_issue_authority(2, &ca));
        expect_ok(guard_issue_server(&ca, &list, 365, &server));
        expect_ok(nd_certificate_expiry_read(ca.certificate, ca.key, &of_ca));
        expect_ok(nd_certificate_expiry_read(server.certificate, server.key, &of_server));
        assert_int_equal(of_ca, of_server);
        expect_error(nd_certificate_expiry_read(server.certificate, ca.key, &of_ca), ND_INVALID, "do not match");
}

static void an_expired_authority_signs_nothing([[maybe_unused]] void **state) {
        static const char *const names[] = {"guard.example"};
        const struct nd_strings list = {.items = (char **) (void *) names, .count = 1};
        nd_cleanup(guard_issued_done) struct guard_issued ca = {}, server = {};

        expect_ok(guard_issue_authority(0, &ca));
        expect_error(guard_issue_server(&ca, &list, 365, &server), ND_INVALID, "the authority has expired");
}

static void names_with_a_scheme_or_a_port_are_refused([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "https://guard.example", "guard.example:9443", "", ".guard", "a..b", "a b", "[::1]", "a\n"};
        nd_cleanup(guard_issued_done) struct guard_issued ca = {}, server = {};

        expect_ok(guard_issue_authority(10, &ca));
        for (size_t i = 0; i < nd_count_of(bad); i++) {
                char *item = (char *) bad[i];
                const struct nd_strings list = {.items = &item, .count = 1};

                expect_error(guard_issue_server(&ca, &list, 10, &server), ND_INVALID, "neither an IP address nor a DNS name");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(clients_accept_each_name_and_no_other),
                cmocka_unit_test(a_certificate_does_not_outlive_its_authority),
                cmocka_unit_test(an_expired_authority_signs_nothing),
                cmocka_unit_test(names_with_a_scheme_or_a_port_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
