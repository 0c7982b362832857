/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/text.h"
#include "mon/line.h"

static const uint64_t when = UINT64_C(1475713029669794202); /* 2016-10-06T00:17:09.669794202Z */
#define STAMP "2016-10-06T00:17:09.669794202Z "

/* Returns the log lines of these bytes; the rest stays in the buffer. */
static char *cut(struct mon_line_buffer *buffer, const char *bytes, size_t length, bool end) {
        struct nd_text text = ND_TEXT(1 << 20);
        struct mon_line_batch batch;
        size_t at = 0;
        bool more;

        assert_true(length <= sizeof buffer->bytes - buffer->length);
        memcpy(buffer->bytes + buffer->length, bytes, length);
        buffer->length += length;
        do {
                mon_line_batch_begin(&batch, "stdout", when);
                more = mon_line_batch_fill(&batch, buffer, &at, end);
                for (size_t i = 0; i < batch.count; i++)
                        nd_text_append(&text, batch.vectors[i].iov_base, batch.vectors[i].iov_len);
        } while (more);
        mon_line_consume(buffer, at);
        return text.bytes ? nd_text_steal(&text) : nd_strdup("");
}

static void a_time_is_written_in_utc_with_nine_digits([[maybe_unused]] void **state) {
        static const struct {
                uint64_t time;
                const char *text;
        } cases[] = {
                {0, "1970-01-01T00:00:00.000000000Z"},
                {when, "2016-10-06T00:17:09.669794202Z"},
                {UINT64_C(951782400000000001), "2000-02-29T00:00:00.000000001Z"},
                {UINT64_C(1709251199999999999), "2024-02-29T23:59:59.999999999Z"},
                {UINT64_C(1709251200000000000), "2024-03-01T00:00:00.000000000Z"},
                {UINT64_C(4107542399000000000), "2100-02-28T23:59:59.000000000Z"},
                {UINT64_C(4107542400000000000), "2100-03-01T00:00:00.000000000Z"},
                {UINT64_C(1767225599000000000), "2025-12-31T23:59:59.000000000Z"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                char stamp[LINE_TIMESTAMP + 1];

                mon_line_timestamp(cases[i].time, stamp);
                assert_string_equal(stamp, cases[i].text);
        }
}

static void a_line_is_full_when_its_newline_arrives([[maybe_unused]] void **state) {
        struct mon_line_buffer buffer = {};

        expect_text(cut(&buffer, "a\nb", 3, false), STAMP "stdout F a\n");
        expect_text(cut(&buffer, "c", 1, false), "");
        expect_text(cut(&buffer, "\n\n", 2, false), STAMP "stdout F bc\n" STAMP "stdout F \n");
        assert_int_equal(buffer.length, 0);
}

static void the_end_of_a_stream_makes_the_rest_a_partial_line([[maybe_unused]] void **state) {
        struct mon_line_buffer buffer = {};

        expect_text(cut(&buffer, "x\nprompt> ", 10, true), STAMP "stdout F x\n" STAMP "stdout P prompt> \n");
        expect_text(cut(&buffer, "", 0, true), "");
}

static void null_bytes_and_carriage_returns_are_kept([[maybe_unused]] void **state) {
        struct mon_line_buffer buffer = {};
        nd_autofree char *got = cut(&buffer, "a\0b\r\n", 5, false);

        assert_memory_equal(got, STAMP "stdout F a\0b\r\n", sizeof(STAMP "stdout F a") + 3);
}

static void a_line_of_the_maximum_length_is_full_and_one_byte_more_is_split([[maybe_unused]] void **state) {
        nd_autofree char *long_line = nd_malloc(LINE_PIECE + 2), *expected = nullptr;
        struct mon_line_buffer buffer = {};

        memset(long_line, 'x', LINE_PIECE + 1);
        long_line[LINE_PIECE] = '\n';
        expected = nd_format(STAMP "stdout F %.*s\n", LINE_PIECE, long_line);
        expect_text(cut(&buffer, long_line, LINE_PIECE + 1, false), expected);

        expect_text(cut(&buffer, long_line, LINE_PIECE, false), "");
        free(expected);
        expected = nd_format(STAMP "stdout P %.*s\n", LINE_PIECE, long_line);
        expect_text(cut(&buffer, "y", 1, false), expected);
        expect_text(cut(&buffer, "\n", 1, false), STAMP "stdout F y\n");
}

static void lines_beyond_a_batch_continue_in_the_next([[maybe_unused]] void **state) {
        struct mon_line_buffer buffer = {};
        nd_autofree char *ends = nd_malloc(1000), *got = nullptr;
        size_t lines = 0;

        memset(ends, '\n', 1000);
        got = cut(&buffer, ends, 1000, false);
        for (const char *at = got; *at; at = strchr(at, '\n') + 1)
                lines++;
        assert_int_equal(lines, 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_time_is_written_in_utc_with_nine_digits),
                cmocka_unit_test(a_line_is_full_when_its_newline_arrives),
                cmocka_unit_test(the_end_of_a_stream_makes_the_rest_a_partial_line),
                cmocka_unit_test(null_bytes_and_carriage_returns_are_kept),
                cmocka_unit_test(a_line_of_the_maximum_length_is_full_and_one_byte_more_is_split),
                cmocka_unit_test(lines_beyond_a_batch_continue_in_the_next),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
