/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/server/authority.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <time.h>

#include <unit/expect.h>

enum {
        OVERLAP = 60,
};

static const char *const names[] = {"nodens-guard.nodens-system.svc"};
static const struct nd_strings list = {.items = (char **) (void *) names, .count = 1};

/* Whether an API server with this bundle accepts the guard. */
static bool accepts(const char *bundle, const char *server) {
        gnutls_datum_t trusted = {.data = (unsigned char *) bundle, .size = (unsigned) strlen(bundle)},
                       text = {.data = (unsigned char *) server, .size = (unsigned) strlen(server)};
        gnutls_x509_trust_list_t trust = nullptr;
        gnutls_x509_crt_t certificate = nullptr;
        unsigned status = 0;

        assert_int_equal(gnutls_x509_crt_init(&certificate), 0);
        assert_int_equal(gnutls_x509_crt_import(certificate, &text, GNUTLS_X509_FMT_PEM), 0);
        assert_int_equal(gnutls_x509_trust_list_init(&trust, 0), 0);
        assert_true(gnutls_x509_trust_list_add_trust_mem(trust, &trusted, nullptr, GNUTLS_X509_FMT_PEM, 0, 0) > 0);
        assert_int_equal(gnutls_x509_trust_list_verify_crt(trust, &certificate, 1, 0, &status, nullptr), 0);
        gnutls_x509_trust_list_deinit(trust, 1);
        gnutls_x509_crt_deinit(certificate);
        return status == 0;
}

static struct guard_authority_settings settings_at(uint64_t now) {
        return (struct guard_authority_settings) {.names = &list,
                                                  .authority_days = 365,
                                                  .server_days = 90,
                                                  .overlap_seconds = OVERLAP,
                                                  .now = now,
                                                  .in_place = true};
}

static enum guard_authority_step advance(struct guard_authority *a, struct guard_authority_settings settings) {
        enum guard_authority_step step = GUARD_AUTHORITY_KEPT;

        expect_ok(guard_authority_advance(a, &settings, &step));
        return step;
}

/* As another guard reads it from the Secret. */
static void copy(const struct guard_authority *from, struct guard_authority *ret) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        struct nd_json_out out = {.text = &text};
        nd_autojson yyjson_doc *doc = nullptr;

        nd_json_open(&out, nullptr, '{');
        guard_authority_encode(from, &out);
        nd_json_close(&out, '}');
        expect_ok(nd_json_parse(nd_text_get(&text), text.length, 1 << 20, &doc));
        guard_authority_decode(yyjson_obj_get(yyjson_doc_get_root(doc), "data"), ret);
}

static void a_rotation_never_leaves_an_api_server_behind([[maybe_unused]] void **state) {
        nd_cleanup(guard_authority_done) struct guard_authority a = {};
        nd_autofree char *before = nullptr, *bundle = nullptr, *certificate = nullptr;
        struct guard_authority_settings settings = settings_at(1000);
        static const enum guard_authority_step expected[] = {GUARD_AUTHORITY_ANNOUNCED, GUARD_AUTHORITY_SWITCHED,
                                                             GUARD_AUTHORITY_RETIRED};

        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_MADE);
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_KEPT);
        before = guard_authority_bundle(&a);
        certificate = nd_strdup(a.server.certificate);
        for (size_t i = 0; i < nd_count_of(expected); i++) {
                settings.rotate = i == 0;
                settings.now += OVERLAP;
                assert_int_equal(advance(&a, settings), expected[i]);
                settings.rotate = false;
                /* before the overlap is over */
                assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_KEPT);
                free(bundle);
                bundle = guard_authority_bundle(&a);
                /* API servers and guards see a step one after the other: the old certificate with
                 * the new bundle, and the new certificate with the old bundle */
                assert_true(accepts(bundle, certificate));
                assert_true(accepts(before, a.server.certificate));
                nd_strset(&before, bundle);
                nd_strset(&certificate, a.server.certificate);
        }
        assert_null(a.previous);
        assert_null(a.next.certificate);
}

static void a_bundle_that_is_not_in_the_webhooks_stops_the_rotation([[maybe_unused]] void **state) {
        nd_cleanup(guard_authority_done) struct guard_authority a = {};
        struct guard_authority_settings settings = settings_at(1000);

        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_MADE);
        settings.rotate = true;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_ANNOUNCED);
        settings.now += 10 * OVERLAP;
        settings.in_place = false;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_KEPT);
        settings.in_place = true;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_SWITCHED);
        settings.in_place = false;
        settings.now += 10 * OVERLAP;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_KEPT);
        assert_non_null(a.previous);
}

static void certificates_are_renewed_when_a_third_of_their_time_is_left([[maybe_unused]] void **state) {
        nd_cleanup(guard_authority_done) struct guard_authority a = {};
        nd_autofree char *first = nullptr;
        struct guard_authority_settings settings = settings_at(1000);

        settings.server_days = 10;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_MADE);
        first = nd_strdup(a.server.certificate);
        settings.server_days = 29; /* ten days are more than a third of that */
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_KEPT);
        settings.server_days = 31;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_RENEWED);
        assert_string_not_equal(first, a.server.certificate);
        settings.authority_days = 3 * 365 + 10; /* the authority has 365 days, less than a third */
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_ANNOUNCED);
}

static void an_expired_authority_is_replaced_at_once([[maybe_unused]] void **state) {
        nd_cleanup(guard_authority_done) struct guard_authority a = {};

        expect_ok(guard_issue_authority(0, &a.current));
        assert_int_equal(advance(&a, settings_at(1000)), GUARD_AUTHORITY_MADE);
        assert_non_null(a.server.certificate);
}

static void a_clock_that_went_back_does_not_stop_the_rotation([[maybe_unused]] void **state) {
        nd_cleanup(guard_authority_done) struct guard_authority a = {};
        struct guard_authority_settings settings = settings_at(1000000);

        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_MADE);
        settings.rotate = true;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_ANNOUNCED);
        settings.now = 1000;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_SWITCHED);
}

static void another_guard_reads_the_same_from_the_secret([[maybe_unused]] void **state) {
        nd_cleanup(guard_authority_done) struct guard_authority a = {}, b = {};
        struct guard_authority_settings settings = settings_at(1000);
        nd_autofree char *of_a = nullptr, *of_b = nullptr;

        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_MADE);
        settings.rotate = true;
        assert_int_equal(advance(&a, settings), GUARD_AUTHORITY_ANNOUNCED);
        copy(&a, &b);
        of_a = guard_authority_bundle(&a);
        of_b = guard_authority_bundle(&b);
        assert_string_equal(of_a, of_b);
        assert_string_equal(a.server.key, b.server.key);
        assert_int_equal(a.since, b.since);
}

static void what_cannot_be_read_is_made_again([[maybe_unused]] void **state) {
        static const char *const texts[] = {
                "{}", "null", "[]", "{\"ca.crt\": 1, \"ca.key\": \"!\"}",
                "{\"ca.crt\": \"eA==\", \"ca.key\": \"eA==\", \"previous.crt\": \"eA==\", \"since\": \"eA==\"}"};

        for (size_t i = 0; i < nd_count_of(texts); i++) {
                nd_cleanup(guard_authority_done) struct guard_authority a = {};
                nd_autojson yyjson_doc *doc = nullptr;

                expect_ok(nd_json_parse(texts[i], strlen(texts[i]), 1 << 20, &doc));
                guard_authority_decode(yyjson_doc_get_root(doc), &a);
                assert_null(a.current.certificate);
                assert_null(a.previous);
                assert_int_equal(advance(&a, settings_at(1000)), GUARD_AUTHORITY_MADE);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_rotation_never_leaves_an_api_server_behind),
                cmocka_unit_test(a_bundle_that_is_not_in_the_webhooks_stops_the_rotation),
                cmocka_unit_test(certificates_are_renewed_when_a_third_of_their_time_is_left),
                cmocka_unit_test(an_expired_authority_is_replaced_at_once),
                cmocka_unit_test(a_clock_that_went_back_does_not_stop_the_rotation),
                cmocka_unit_test(another_guard_reads_the_same_from_the_secret),
                cmocka_unit_test(what_cannot_be_read_is_made_again),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
