/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/line.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum {
        DAY_SECONDS = 86400,
        VECTORS_OF_A_LINE = 3, /* header, text, line end */
};

static constexpr uint64_t second_ns = 1000000000;

/* Years begin in March, so that the leap day is the last one; 400 of them have 146097 days.
 * gmtime_r() would load the time zone. */
static void civil_date(uint64_t days, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day) {
        uint64_t z = days + 719468, era = z / 146097, day_of_era = z % 146097;
        uint64_t year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
        uint64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100), shifted = (5 * day_of_year + 2) / 153;

        *ret_day = (unsigned) (day_of_year - (153 * shifted + 2) / 5 + 1);
        *ret_month = (unsigned) (shifted < 10 ? shifted + 3 : shifted - 9);
        *ret_year = (unsigned) (year + era * 400 + (*ret_month <= 2));
}

static void put_digits(char *at, uint64_t value, size_t digits) {
        for (size_t i = digits; i > 0; i--, value /= 10)
                at[i - 1] = (char) ('0' + value % 10);
}

void mon_line_timestamp(uint64_t nanoseconds, char ret[static LINE_TIMESTAMP + 1]) {
        uint64_t seconds = nanoseconds / second_ns, second = seconds % DAY_SECONDS;
        unsigned year, month, day;

        civil_date(seconds / DAY_SECONDS, &year, &month, &day);
        memcpy(ret, "0000-00-00T00:00:00.000000000Z", LINE_TIMESTAMP + 1);
        put_digits(ret, year, 4);
        put_digits(ret + 5, month, 2);
        put_digits(ret + 8, day, 2);
        put_digits(ret + 11, second / 3600, 2);
        put_digits(ret + 14, second / 60 % 60, 2);
        put_digits(ret + 17, second % 60, 2);
        put_digits(ret + 20, nanoseconds % second_ns, 9);
}

void mon_line_batch_begin(struct mon_line_batch *batch, const char *stream, uint64_t nanoseconds) {
        char stamp[LINE_TIMESTAMP + 1];

        mon_line_timestamp(nanoseconds, stamp);
        (void) snprintf(batch->full, sizeof batch->full, "%s %s F ", stamp, stream);
        (void) snprintf(batch->partial, sizeof batch->partial, "%s %s P ", stamp, stream);
        batch->count = batch->lines = 0;
}

static void add(struct mon_line_batch *batch, const void *bytes, size_t length) {
        nd_assert(batch->count < LINE_VECTORS);
        batch->vectors[batch->count++] = (struct iovec) {.iov_base = (void *) bytes, .iov_len = length};
}

/* The newline of a full line follows it in the buffer; a partial line gets one. */
static void add_line(struct mon_line_batch *batch, const char *text, size_t length, bool whole) {
        const char *header = whole ? batch->full : batch->partial;

        add(batch, header, strlen(header));
        add(batch, text, length + whole);
        if (!whole)
                add(batch, "\n", 1);
        batch->lines++;
}

bool mon_line_batch_fill(struct mon_line_batch *batch, const struct mon_line_buffer *buffer, size_t *at, bool end) {
        while (*at < buffer->length) {
                const char *text = buffer->bytes + *at;
                size_t left = buffer->length - *at;
                const char *newline = memchr(text, '\n', left);
                size_t length = newline ? (size_t) (newline - text) : left;

                if (!newline && length <= LINE_PIECE && !end)
                        return false;
                if (batch->count + VECTORS_OF_A_LINE > LINE_VECTORS)
                        return true;
                if (length > LINE_PIECE) {
                        newline = nullptr;
                        length = LINE_PIECE;
                }
                add_line(batch, text, length, newline != nullptr);
                *at += length + (newline != nullptr);
        }
        return false;
}

void mon_line_consume(struct mon_line_buffer *buffer, size_t at) {
        if (at == 0)
                return;
        nd_assert(at <= buffer->length);
        buffer->length -= at;
        memmove(buffer->bytes, buffer->bytes + at, buffer->length);
}
