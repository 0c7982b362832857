/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "net/http-head.h"

/* A kubelet's request for `kubectl exec`, with the query of the original request. */
static const char exec_head[] = "POST /exec/aB3_-x9Z?command=ls&stdout=true HTTP/1.1\r\n"
                                "Host: 127.0.0.1:40000\r\n"
                                "Connection: Upgrade\r\n"
                                "Content-Length: 0\r\n"
                                "Upgrade: SPDY/3.1\r\n"
                                "X-Stream-Protocol-Version: v5.channel.k8s.io\r\n"
                                "x-stream-protocol-version:  v4.channel.k8s.io , v3.channel.k8s.io,,\r\n"
                                "X-Stream-Protocol-Version:\r\n"
                                "X-Stream-Protocol-Version: channel.k8s.io\t\r\n"
                                "\r\n";

static void expect_refusal(const char *text, enum nd_error_code code, const char *words) {
        nd_autohead struct nd_http_head head = {};
        size_t used = 1;

        expect_error(nd_http_head_read(text, strlen(text), &head, &used), code, words);
        assert_int_equal(used, 0);
        assert_null(head.bytes);
}

static void a_head_is_parsed_and_later_bytes_are_left([[maybe_unused]] void **state) {
        nd_autotext struct nd_text bytes = ND_TEXT(4096);
        nd_autohead struct nd_http_head head = {};
        size_t used;

        nd_text_add(&bytes, exec_head);
        nd_text_add(&bytes, "\x80\x03\r\n\r\n");
        expect_ok(nd_http_head_read(bytes.bytes, bytes.length, &head, &used));
        assert_int_equal(used, sizeof exec_head - 1);
        assert_string_equal(head.method, "POST");
        assert_string_equal(head.path, "/exec/aB3_-x9Z");
        assert_string_equal(nd_http_head_get(&head, "UPGRADE"), "SPDY/3.1");
        assert_string_equal(nd_http_head_get(&head, "X-Stream-Protocol-Version"), "v5.channel.k8s.io");
        assert_null(nd_http_head_get(&head, "Origin"));
}

static void a_head_may_come_byte_by_byte([[maybe_unused]] void **state) {
        for (size_t length = 0; length < sizeof exec_head - 1; length++) {
                nd_autohead struct nd_http_head head = {};
                size_t used = 1;

                expect_ok(nd_http_head_read(exec_head, length, &head, &used));
                assert_int_equal(used, 0);
                assert_null(head.method);
        }
}

static void repeated_fields_and_lists_are_one_list([[maybe_unused]] void **state) {
        static const char *const wanted[] = {"v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "channel.k8s.io"};
        struct nd_http_items items = {.name = "X-Stream-Protocol-Version"};
        nd_autohead struct nd_http_head head = {};
        size_t used, count = 0;

        expect_ok(nd_http_head_read(exec_head, sizeof exec_head - 1, &head, &used));
        while (nd_http_head_next(&head, &items)) {
                assert_true(count < nd_count_of(wanted));
                assert_int_equal(items.length, strlen(wanted[count]));
                assert_memory_equal(items.item, wanted[count], items.length);
                count++;
        }
        assert_int_equal(count, nd_count_of(wanted));
        assert_false(nd_http_head_next(&head, &items));
        assert_true(nd_http_head_lists(&head, "connection", "upgrade"));
        assert_true(nd_http_head_lists(&head, "X-Stream-Protocol-Version", "V4.channel.k8s.io"));
        assert_false(nd_http_head_lists(&head, "X-Stream-Protocol-Version", "v4.channel"));
        assert_false(nd_http_head_lists(&head, "Sec-WebSocket-Protocol", "v4.channel.k8s.io"));
}

static void ambiguous_heads_are_refused([[maybe_unused]] void **state) {
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"\r\n\r\n", "request line"},
                {"GET /\r\n\r\n", "request line"},
                {"GET / HTTP/1.0\r\n\r\n", "HTTP/1.1"},
                {"GET / HTTP/1.1 \r\n\r\n", "HTTP/1.1"},
                {"GET  / HTTP/1.1\r\n\r\n", "HTTP/1.1"},
                {" GET / HTTP/1.1\r\n\r\n", "HTTP/1.1"},
                {"G(T / HTTP/1.1\r\n\r\n", "method"},
                {"GET http://a/ HTTP/1.1\r\n\r\n", "begin with '/'"},
                {"GET /a\tb HTTP/1.1\r\n\r\n", "control character"},
                {"GET / HTTP/1.1\r\nHost\r\n\r\n", "no colon"},
                {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "invalid header name"},
                {"GET / HTTP/1.1\r\n: a\r\n\r\n", "invalid header name"},
                {"GET / HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n", "invalid header name"},
                {"GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n", "control character"},
                {"GET / HTTP/1.1\r\nA: b\r\r\n\r\n", "control character"},
                {"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "body"},
                {"POST / HTTP/1.1\r\ncontent-length: 0\r\nContent-Length: 00\r\n\r\n", "body"},
                {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "body"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_refusal(cases[i].text, ND_INVALID, cases[i].words);
}

static void a_null_byte_is_refused_before_the_head_is_whole([[maybe_unused]] void **state) {
        nd_autohead struct nd_http_head head = {};
        size_t used;

        expect_error(nd_http_head_read("GET \0", 5, &head, &used), ND_INVALID, "null byte");
}

static void a_head_has_bounds([[maybe_unused]] void **state) {
        nd_autotext struct nd_text endless = ND_TEXT(ND_HTTP_HEAD), many = ND_TEXT(ND_HTTP_HEAD);

        nd_text_add(&endless, "GET /");
        while (!endless.overflow)
                nd_text_add(&endless, "aaaaaaaaaaaaaaaa");
        expect_refusal(endless.bytes, ND_EXHAUSTED, "longer than");

        nd_text_add(&many, "GET / HTTP/1.1\r\n");
        for (int i = 0; i <= ND_HTTP_FIELDS; i++)
                nd_text_addf(&many, "A%d: b\r\n", i);
        nd_text_add(&many, "\r\n");
        expect_refusal(many.bytes, ND_EXHAUSTED, "more than 128 headers");
}

static void an_upgrade_is_answered_with_its_fields_only([[maybe_unused]] void **state) {
        static const struct nd_http_field fields[] = {
                {"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"X-Bad", "a\r\nInjected: b"}, {}};
        nd_autotext struct nd_text out = ND_TEXT(ND_HTTP_ANSWER);

        nd_http_answer(&out, 101, fields, nullptr);
        assert_string_equal(nd_text_get(&out),
                            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
}

static void a_refusal_has_a_text_and_closes_the_connection([[maybe_unused]] void **state) {
        static const unsigned statuses[] = {400, 403, 404, 431, 503, 500};
        static const enum nd_error_code codes[] = {ND_INVALID,   ND_DENIED,      ND_NOT_FOUND,
                                                   ND_EXHAUSTED, ND_UNAVAILABLE, ND_INTERNAL};
        nd_autotext struct nd_text out = ND_TEXT(ND_HTTP_ANSWER);

        nd_http_answer(&out, 404, nullptr, nullptr);
        assert_non_null(strstr(out.bytes, "HTTP/1.1 404 Not Found\r\n"));
        assert_non_null(strstr(out.bytes, "Connection: close\r\n"));
        assert_non_null(strstr(out.bytes, "Content-Length: 10\r\n\r\nNot Found\n"));
        for (size_t i = 0; i < nd_count_of(codes); i++) {
                nd_autoerror struct nd_error *error = nd_error_new(codes[i], 0, "no");

                assert_int_equal(nd_http_status(error), statuses[i]);
        }
}

static void a_client_parses_the_response([[maybe_unused]] void **state) {
        static const char good[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nnext",
                          *const bad[] = {
                                  "HTTP/1.0 101 X\r\n\r\n",  "HTTP/1.1 1x1 X\r\n\r\n",           "HTTP/1.1 099 X\r\n\r\n",
                                  "HTTP/1.1 1010 X\r\n\r\n", "HTTP/1.1 101\r\nno colon\r\n\r\n", "\r\n\r\n",
                                  "GET / HTTP/1.1\r\n\r\n"};
        nd_autohead struct nd_http_head head = {}, none = {};
        size_t used;

        expect_ok(nd_http_answer_read(good, sizeof good - 1, &head, &used));
        assert_int_equal(used, sizeof good - 1 - 4);
        assert_int_equal(head.status, 101);
        assert_string_equal(nd_http_head_get(&head, "upgrade"), "websocket");
        expect_ok(nd_http_answer_read(good, used - 1, &none, &used));
        assert_int_equal(used, 0);
        for (size_t i = 0; i < nd_count_of(bad); i++)
                expect_error(nd_http_answer_read(bad[i], strlen(bad[i]), &none, &used), ND_INVALID, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_head_is_parsed_and_later_bytes_are_left),
                cmocka_unit_test(a_head_may_come_byte_by_byte),
                cmocka_unit_test(repeated_fields_and_lists_are_one_list),
                cmocka_unit_test(ambiguous_heads_are_refused),
                cmocka_unit_test(a_null_byte_is_refused_before_the_head_is_whole),
                cmocka_unit_test(a_head_has_bounds),
                cmocka_unit_test(an_upgrade_is_answered_with_its_fields_only),
                cmocka_unit_test(a_client_parses_the_response),
                cmocka_unit_test(a_refusal_has_a_text_and_closes_the_connection),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
