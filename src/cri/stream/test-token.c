/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "cri/stream/token.h"

#include <unit/expect.h>

static struct cri_stream_request *request_for(const char *container) {
        struct cri_stream_request *request = nd_new(struct cri_stream_request);

        request->container = nd_strdup(container);
        nd_strings_add(&request->command, "true");
        return request;
}

static void a_token_works_once([[maybe_unused]] void **state) {
        nd_cleanup(cri_stream_tokens_done) struct cri_stream_tokens tokens = {};
        char one[TOKEN_LENGTH + 1], two[TOKEN_LENGTH + 1];
        struct cri_stream_request *found;

        expect_ok(cri_stream_tokens_issue(&tokens, request_for("a"), 0, one));
        expect_ok(cri_stream_tokens_issue(&tokens, request_for("b"), 0, two));
        assert_string_not_equal(one, two);
        assert_int_equal(strlen(one), TOKEN_LENGTH);
        assert_int_equal(strspn(one, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), TOKEN_LENGTH);
        found = cri_stream_tokens_take(&tokens, one, 0);
        assert_non_null(found);
        assert_string_equal(found->container, "a");
        cri_stream_request_free(found);
        assert_null(cri_stream_tokens_take(&tokens, one, 0));
        assert_int_equal(tokens.list.count, 1);
}

static void an_invalid_token_finds_nothing([[maybe_unused]] void **state) {
        nd_cleanup(cri_stream_tokens_done) struct cri_stream_tokens tokens = {};
        char token[TOKEN_LENGTH + 1], longer[TOKEN_LENGTH + 2] = {};

        expect_ok(cri_stream_tokens_issue(&tokens, request_for("a"), 0, token));
        memcpy(longer, token, TOKEN_LENGTH);
        longer[TOKEN_LENGTH] = 'A';
        assert_null(cri_stream_tokens_take(&tokens, longer, 0));
        assert_null(cri_stream_tokens_take(&tokens, "", 0));
        token[TOKEN_LENGTH - 1] ^= 1;
        assert_null(cri_stream_tokens_take(&tokens, token, 0));
        token[TOKEN_LENGTH - 1] = '\0';
        assert_null(cri_stream_tokens_take(&tokens, token, 0));
        assert_int_equal(tokens.list.count, 1);
}

static void a_token_lives_for_a_minute([[maybe_unused]] void **state) {
        nd_cleanup(cri_stream_tokens_done) struct cri_stream_tokens tokens = {};
        char early[TOKEN_LENGTH + 1], late[TOKEN_LENGTH + 1];
        struct cri_stream_request *found;

        expect_ok(cri_stream_tokens_issue(&tokens, request_for("a"), 0, early));
        expect_ok(cri_stream_tokens_issue(&tokens, request_for("b"), 1, late));
        assert_null(cri_stream_tokens_take(&tokens, early, 60 * ND_SECOND_US));
        found = cri_stream_tokens_take(&tokens, late, 60 * ND_SECOND_US);
        assert_non_null(found);
        cri_stream_request_free(found);
        assert_int_equal(tokens.list.count, 0);
}

static void a_thousand_tokens_are_pending_and_one_more_is_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_stream_tokens_done) struct cri_stream_tokens tokens = {};
        char token[TOKEN_LENGTH + 1];

        for (int i = 0; i < TOKENS_MOST; i++)
                expect_ok(cri_stream_tokens_issue(&tokens, request_for("a"), 0, token));
        expect_error(cri_stream_tokens_issue(&tokens, request_for("b"), 0, token), ND_EXHAUSTED,
                     "maximum number of in-flight requests exceeded");
        /* the others have expired */
        expect_ok(cri_stream_tokens_issue(&tokens, request_for("c"), 60 * ND_SECOND_US, token));
        assert_int_equal(tokens.list.count, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_token_works_once),
                cmocka_unit_test(an_invalid_token_finds_nothing),
                cmocka_unit_test(a_token_lives_for_a_minute),
                cmocka_unit_test(a_thousand_tokens_are_pending_and_one_more_is_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
