/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc.h"

#include <string.h>
#include <unit/expect.h>

static void a_message_in_single_bytes_is_read_whole([[maybe_unused]] void **state) {
        static const char wire[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\1z";
        nd_cleanup(nd_grpc_reader_done) struct nd_grpc_reader reader = {};
        nd_autotext struct nd_text seen = ND_TEXT(64);

        for (size_t i = 0; i < sizeof wire - 1;) {
                size_t used = 0;
                bool complete = false;

                assert_null(nd_grpc_reader_feed(&reader, wire + i, 1, &used, &complete));
                i += used;
                if (complete) {
                        nd_text_addf(&seen, "[%s]", nd_text_get(&reader.body));
                        nd_grpc_reader_next(&reader);
                }
        }
        assert_string_equal(nd_text_get(&seen), "[abc][][z]");
        assert_true(nd_grpc_reader_idle(&reader));
}

static void compressed_and_oversized_messages_are_refused([[maybe_unused]] void **state) {
        static const struct {
                const char *prefix;
                enum nd_error_code code;
        } cases[] = {{"\1\0\0\0\1", ND_UNIMPLEMENTED}, {"\0\1\0\0\1", ND_EXHAUSTED}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(nd_grpc_reader_done) struct nd_grpc_reader reader = {};
                size_t used;
                bool complete;
                nd_autoerror struct nd_error *error = nd_grpc_reader_feed(&reader, cases[i].prefix, 5, &used, &complete);

                assert_int_equal(nd_error_code(error), cases[i].code);
        }
}

static void timeouts_have_eight_digits_and_a_unit([[maybe_unused]] void **state) {
        static const struct {
                const char *text;
                uint64_t us; /* 0 = refused */
        } cases[] = {{"1S", 1000000},
                     {"100m", 100000},
                     {"5u", 5},
                     {"1n", 1},
                     {"99999999H", 99999999 * UINT64_C(3600000000)},
                     {"2M", 120000000},
                     {"", 0},
                     {"S", 0},
                     {"123456789S", 0},
                     {"1s", 0},
                     {"-1S", 0},
                     {"1", 0},
                     {" 1S", 0},
                     {"1.5S", 0}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                uint64_t us = 0;
                nd_autoerror struct nd_error *error = nd_grpc_parse_timeout(cases[i].text, strlen(cases[i].text), &us);

                assert_int_equal(us, cases[i].us);
                assert_int_equal(error == nullptr, cases[i].us != 0);
        }
}

static void a_timeout_is_written_as_it_is_read([[maybe_unused]] void **state) {
        static const uint64_t values[] = {1, 999, 99999999, 120000000, 3600000000, 1000000000000};

        for (size_t i = 0; i < nd_count_of(values); i++) {
                nd_autofree char *text = nd_grpc_format_timeout(values[i]);
                uint64_t us = 0;

                assert_null(nd_grpc_parse_timeout(text, strlen(text), &us));
                assert_true(us <= values[i] && us + 1000000 > values[i]);
        }
}

static void status_texts_survive_the_wire([[maybe_unused]] void **state) {
        static const char text[] = "100% of 'a/b'\n\303\274 \344\270\255";
        nd_autofree char *encoded = nd_grpc_encode_text(text), *decoded = nd_grpc_decode_text(encoded, strlen(encoded));

        assert_string_equal(encoded, "100%25 of 'a/b'%0A%C3%BC %E4%B8%AD");
        assert_string_equal(decoded, text);
}

static void an_invalid_escape_is_left_unchanged([[maybe_unused]] void **state) {
        nd_autofree char *decoded = nd_grpc_decode_text("50% %zz %4 %", 12);

        assert_string_equal(decoded, "50% %zz %4 %");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_message_in_single_bytes_is_read_whole),
                cmocka_unit_test(compressed_and_oversized_messages_are_refused),
                cmocka_unit_test(timeouts_have_eight_digits_and_a_unit),
                cmocka_unit_test(a_timeout_is_written_as_it_is_read),
                cmocka_unit_test(status_texts_survive_the_wire),
                cmocka_unit_test(an_invalid_escape_is_left_unchanged),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
