/* SPDX-License-Identifier: Apache-2.0 */
#include "net/api-objects.h"

#include <unit/expect.h>

static struct nd_error *note(enum nd_api_event event, yyjson_val *object, void *userdata) {
        static const char signs[] = {[ND_API_PUT] = '+', [ND_API_REMOVED] = '-', [ND_API_BOOKMARK] = '='};

        nd_text_addf(userdata, "%c%s@%s ", signs[event], nd_api_name(object), nd_api_version(object));
        return nullptr;
}

static const char events[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}}\n"
                             "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\"}}}\n"
                             "\n"
                             "{\"type\":\"LATER\",\"object\":{}}\n"
                             "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"}}}\n"
                             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n";

static void events_are_the_same_in_pieces_of_any_size([[maybe_unused]] void **state) {
        for (size_t piece = 1; piece <= sizeof events; piece++) {
                nd_autotext struct nd_text seen = ND_TEXT(4096);
                nd_cleanup(nd_api_lines_done) struct nd_api_lines lines = {.take = note, .userdata = &seen};

                for (size_t at = 0; at < sizeof events - 1; at += piece) {
                        size_t left = sizeof events - 1 - at;

                        expect_ok(nd_api_lines_feed(&lines, events + at, left < piece ? left : piece));
                }
                assert_string_equal(nd_text_get(&seen), "+a@1 +a@2 -a@3 =@9 ");
        }
}

static void an_error_event_ends_a_watch_with_its_status([[maybe_unused]] void **state) {
        static const char gone[] =
                "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"too old\"}}\n";
        nd_autotext struct nd_text seen = ND_TEXT(4096);
        nd_cleanup(nd_api_lines_done) struct nd_api_lines lines = {.take = note, .userdata = &seen};
        nd_autoerror struct nd_error *error = nd_api_lines_feed(&lines, gone, strlen(gone));

        assert_non_null(error);
        assert_int_equal(nd_error_errno(error), 410);
        assert_string_equal(nd_error_text(error), "too old");
}

static void a_line_has_a_ceiling([[maybe_unused]] void **state) {
        nd_cleanup(nd_api_lines_done) struct nd_api_lines lines = {.take = note};
        nd_autofree char *much = nd_malloc(1 << 20);
        struct nd_error *error = nullptr;

        memset(much, 'x', 1 << 20);
        for (int i = 0; i < 16 && !error; i++)
                error = nd_api_lines_feed(&lines, much, 1 << 20);
        expect_error(error, ND_EXHAUSTED, "exceeds");
}

static void a_page_has_its_items_and_the_continuation([[maybe_unused]] void **state) {
        static const char text[] =
                "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"77\",\"continue\":\"abc\"},\"items\":[{},{}]}";
        static const char last[] = "{\"metadata\":{\"resourceVersion\":\"77\"},\"items\":null}";
        nd_cleanup(nd_api_page_done) struct nd_api_page page = {};

        expect_ok(nd_api_page_parse(text, strlen(text), &page));
        assert_int_equal(yyjson_arr_size(page.items), 2);
        assert_string_equal(page.version, "77");
        assert_string_equal(page.continuation, "abc");
        nd_api_page_done(&page);
        expect_ok(nd_api_page_parse(last, strlen(last), &page));
        assert_null(page.items);
        assert_string_equal(page.continuation, "");
        nd_api_page_done(&page);
        expect_error(nd_api_page_parse("{}", 2, &page), ND_INVALID, "not a list");
}

static void a_refusal_contains_the_servers_message([[maybe_unused]] void **state) {
        static const char status[] = "{\"kind\":\"Status\",\"message\":\"no such thing\",\"code\":404}";
        nd_autoerror struct nd_error *error = nd_api_refusal(404, status, strlen(status));

        assert_int_equal(nd_error_code(error), ND_NOT_FOUND);
        assert_int_equal(nd_error_errno(error), 404);
        assert_string_equal(nd_error_text(error), "HTTP 404: no such thing");
        expect_error(nd_api_refusal(502, "<html>bad\xff", 10), ND_UNAVAILABLE, "HTTP 502: <html>bad");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(events_are_the_same_in_pieces_of_any_size),
                cmocka_unit_test(an_error_event_ends_a_watch_with_its_status),
                cmocka_unit_test(a_line_has_a_ceiling),
                cmocka_unit_test(a_page_has_its_items_and_the_continuation),
                cmocka_unit_test(a_refusal_contains_the_servers_message),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
