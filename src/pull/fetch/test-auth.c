/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/auth.h"

#include <unit/expect.h>

#include "base/text.h"
#include "pull/protocol/events.h"

static struct nd_error *challenge(const char *header, struct pull_challenge *ret) {
        return pull_challenge_parse(header, strlen(header), ret);
}

static void a_bearer_challenge_is_read([[maybe_unused]] void **state) {
        nd_cleanup(pull_challenge_done) struct pull_challenge c = {};

        expect_ok(challenge("Bearer realm=\"https://auth.example/token\",service=\"reg\\\"istry\" , scope=repository, error=x",
                            &c));
        assert_string_equal(c.realm, "https://auth.example/token");
        assert_string_equal(c.service, "reg\"istry");
        assert_string_equal(c.scope, "repository");
        assert_false(c.basic);
}

static void one_header_may_have_several_schemes([[maybe_unused]] void **state) {
        nd_cleanup(pull_challenge_done) struct pull_challenge c = {};

        expect_ok(challenge("Negotiate, Basic realm=\"a\", bearer realm=\"https://b\"", &c));
        assert_true(c.basic);
        assert_string_equal(c.realm, "https://b");
}

static void invalid_challenges_are_rejected([[maybe_unused]] void **state) {
        static const char *const bad[] = {"Bearer realm=\"x", "Bearer realm=", "\"x\"", "Bearer realm=\"a\nb\"", "="};

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                nd_cleanup(pull_challenge_done) struct pull_challenge c = {};

                expect_error(challenge(bad[i], &c), ND_INVALID, "challenge");
        }
}

static void tokens_are_read_in_both_forms([[maybe_unused]] void **state) {
        static const struct {
                const char *json, *token;
                uint64_t seconds;
        } cases[] = {
                {"{\"token\":\"abc\"}", "abc", 60},
                {"{\"access_token\":\"def\",\"expires_in\":300}", "def", 300},
                {"{\"token\":\"\",\"access_token\":\"x\",\"expires_in\":-5}", "x", 60},
                {"{\"token\":\"y\",\"expires_in\":99999999999}", "y", 86400},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *token = nullptr;
                uint64_t seconds;

                expect_ok(pull_token_parse(cases[i].json, strlen(cases[i].json), &token, &seconds));
                assert_string_equal(token, cases[i].token);
                assert_int_equal(seconds, cases[i].seconds);
        }
}

static void unusable_tokens_are_rejected([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "{}", "[]", "{\"token\":1}", "{\"token\":\"a b\"}", "{\"token\":\"a\\r\\nb\"}", "{\"token\":\"\\u00e9\"}"};
        nd_autofree char *token = nullptr;
        uint64_t seconds;

        for (size_t i = 0; i < nd_count_of(bad); i++)
                expect_error(pull_token_parse(bad[i], strlen(bad[i]), &token, &seconds), ND_INVALID, "token");
}

static struct pull_credentials credentials = {
        .username = (char *) "user", .password = (char *) "a-secret", .server = (char *) ""};
static struct pull_host upstream = {
        .url = (char *) "https://r.example/v2", .authority = (char *) "r.example", .upstream = true};
static struct pull_host mirror = {.url = (char *) "https://m.example/v2", .authority = (char *) "m.example"};

static void auth_done(struct pull_auth **auth) {
        pull_auth_free(*auth);
}

static void credentials_go_to_the_registry_and_not_to_mirrors([[maybe_unused]] void **state) {
        nd_cleanup(auth_done) struct pull_auth *auth = pull_auth_new(&credentials);
        nd_cleanup(pull_token_request_done) struct pull_token_request ours = {}, theirs = {};
        const struct pull_challenge c = {.realm = (char *) "https://t.example/token",
                                         .service = (char *) "s",
                                         .scope = (char *) "repository:a/b:pull,push"};

        expect_ok(pull_auth_respond(auth, &upstream, "a/b", &c, &ours));
        assert_string_equal(ours.authorization, "Basic dXNlcjphLXNlY3JldA==");
        assert_string_equal(ours.url, "https://t.example/token?service=s&scope=repository%3Aa%2Fb%3Apull");
        expect_ok(pull_auth_respond(auth, &mirror, "a/b", &c, &theirs));
        assert_null(theirs.authorization);
}

static void credentials_that_name_a_server_go_only_there([[maybe_unused]] void **state) {
        struct pull_credentials named = credentials;
        nd_cleanup(auth_done) struct pull_auth *auth = pull_auth_new(&named);
        nd_cleanup(pull_token_request_done) struct pull_token_request ours = {}, theirs = {};
        const struct pull_challenge c = {.realm = (char *) "https://t.example/token"};

        named.server = (char *) "https://M.example/v1/";
        expect_ok(pull_auth_respond(auth, &upstream, "a", &c, &ours));
        assert_null(ours.authorization);
        expect_ok(pull_auth_respond(auth, &mirror, "a", &c, &theirs));
        assert_non_null(theirs.authorization);
}

static void a_realm_must_be_https_without_a_user([[maybe_unused]] void **state) {
        static const char *const bad[] = {"http://t.example/", "file:///etc/passwd", "https://u:p@t.example/",
                                          "https://",          "https://x/ y",       "https://x/#y"};
        nd_cleanup(auth_done) struct pull_auth *auth = pull_auth_new(&credentials);

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                nd_cleanup(pull_token_request_done) struct pull_token_request request = {};

                expect_error(
                        pull_auth_respond(auth, &upstream, "a", &(struct pull_challenge) {.realm = (char *) bad[i]}, &request),
                        ND_INVALID, "address");
        }
}

static void a_token_is_kept_for_its_server_and_repository([[maybe_unused]] void **state) {
        nd_cleanup(auth_done) struct pull_auth *auth = pull_auth_new(nullptr);
        static const char answer[] = "{\"token\":\"abc\",\"expires_in\":100}";

        expect_ok(pull_auth_store_token(auth, &upstream, "a/b", answer, sizeof answer - 1));
        expect_text(pull_auth_header(auth, &upstream, "a/b"), "Bearer abc");
        assert_null(pull_auth_header(auth, &upstream, "a/c"));
        assert_null(pull_auth_header(auth, &mirror, "a/b"));
}

static void each_secret(void *userdata, void (*each)(void *, const char *), void *each_userdata) {
        pull_auth_each_secret(userdata, each, each_userdata);
}

static void secrets_users_and_queries_are_redacted_in_messages([[maybe_unused]] void **state) {
        nd_cleanup(auth_done) struct pull_auth *auth = pull_auth_new(&credentials);
        const struct pull_events events = {.fd = -1, .secrets = each_secret, .userdata = auth};

        expect_text(pull_events_redact(&events, "GET https://u:p@h.example/a?sig=1&x=2 a-secret, and http://b?c d"),
                    "GET https://h.example/a [secret], and http://b d");
        expect_text(pull_events_redact(&events, ""), "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bearer_challenge_is_read),
                cmocka_unit_test(one_header_may_have_several_schemes),
                cmocka_unit_test(invalid_challenges_are_rejected),
                cmocka_unit_test(tokens_are_read_in_both_forms),
                cmocka_unit_test(unusable_tokens_are_rejected),
                cmocka_unit_test(credentials_go_to_the_registry_and_not_to_mirrors),
                cmocka_unit_test(credentials_that_name_a_server_go_only_there),
                cmocka_unit_test(a_realm_must_be_https_without_a_user),
                cmocka_unit_test(a_token_is_kept_for_its_server_and_repository),
                cmocka_unit_test(secrets_users_and_queries_are_redacted_in_messages),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
