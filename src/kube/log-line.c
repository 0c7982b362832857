/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/log-line.h"

#include <string.h>

#include "base/text.h"

/* The remaining bytes. */
struct reader {
        const char *at, *end;
};

static bool take_char(struct reader *r, char c) {
        if (r->at == r->end || *r->at != c)
                return false;
        r->at++;
        return true;
}

static bool take_digits(struct reader *r, size_t digits, unsigned least, unsigned most, unsigned *ret) {
        unsigned value = 0;

        if ((size_t) (r->end - r->at) < digits)
                return false;
        for (size_t i = 0; i < digits; i++, r->at++) {
                if (*r->at < '0' || *r->at > '9')
                        return false;
                value = value * 10 + (unsigned) (*r->at - '0');
        }
        *ret = value;
        return value >= least && value <= most;
}

/* ".5" is half a second; digits below a nanosecond are ignored. Without a dot it is 0. */
static bool take_fraction(struct reader *r, uint64_t *ret_ns) {
        uint64_t unit = 100000000;
        const char *first;

        *ret_ns = 0;
        if (!take_char(r, '.'))
                return true;
        for (first = r->at; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++, unit /= 10)
                *ret_ns += (uint64_t) (*r->at - '0') * unit;
        return r->at > first;
}

/* 'Z', or the offset from UTC in seconds. */
static bool take_zone(struct reader *r, int64_t *ret_ahead) {
        unsigned hours, minutes;
        bool ahead;

        *ret_ahead = 0;
        if (take_char(r, 'Z'))
                return true;
        ahead = take_char(r, '+');
        if (!ahead && !take_char(r, '-'))
                return false;
        if (!take_digits(r, 2, 0, 23, &hours) || !take_char(r, ':') || !take_digits(r, 2, 0, 59, &minutes))
                return false;
        *ret_ahead = ((int64_t) hours * 60 + minutes) * 60 * (ahead ? 1 : -1);
        return true;
}

/* Days since 1970 in the proleptic Gregorian calendar. Years begin in March here, so that the leap
 * day is the last one. */
static int64_t days_of(unsigned year, unsigned month, unsigned day) {
        int64_t y = (int64_t) year - (month <= 2), era = y / 400, of_era = y % 400;
        int64_t of_year = (153 * (int64_t) (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

        return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool is_date(unsigned year, unsigned month, unsigned day) {
        static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        return day <= days[month - 1] + (month == 2 && leap ? 1U : 0U);
}

static bool take_time(struct reader *r, uint64_t *ret) {
        unsigned year, month, day, hour, minute, second;
        uint64_t fraction;
        int64_t ahead, seconds;

        if (!take_digits(r, 4, 1970, 2261, &year) || !take_char(r, '-') || !take_digits(r, 2, 1, 12, &month) ||
            !take_char(r, '-') || !take_digits(r, 2, 1, 31, &day) || !is_date(year, month, day) || !take_char(r, 'T') ||
            !take_digits(r, 2, 0, 23, &hour) || !take_char(r, ':') || !take_digits(r, 2, 0, 59, &minute) ||
            !take_char(r, ':') || !take_digits(r, 2, 0, 60, &second) || !take_fraction(r, &fraction) || !take_zone(r, &ahead))
                return false;
        seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - ahead;
        if (seconds < 0)
                return false;
        *ret = (uint64_t) seconds * 1000000000 + fraction;
        return true;
}

bool nd_log_line_time_parse(const char *bytes, size_t length, uint64_t *ret) {
        struct reader r = {bytes, bytes + length};
        uint64_t time;

        if (length == 0 || !take_time(&r, &time) || r.at != r.end)
                return false;
        *ret = time;
        return true;
}

static bool take_stream(struct reader *r, enum nd_log_line_stream *ret) {
        static const char *const names[] = {[ND_LOG_STDOUT] = "stdout", [ND_LOG_STDERR] = "stderr"};
        static_assert(nd_count_of(names) == ND_LOG_STREAMS);

        for (enum nd_log_line_stream i = 0; i < ND_LOG_STREAMS; i++) {
                size_t length = strlen(names[i]);

                if ((size_t) (r->end - r->at) >= length && memcmp(r->at, names[i], length) == 0) {
                        r->at += length;
                        *ret = i;
                        return true;
                }
        }
        return false;
}

/* "F" or "P", and optional tags after colons, none of which are defined yet. */
static bool take_tags(struct reader *r, bool *ret_whole) {
        *ret_whole = take_char(r, 'F');
        if (!*ret_whole && !take_char(r, 'P'))
                return false;
        if (take_char(r, ':'))
                while (r->at < r->end && *r->at != ' ')
                        r->at++;
        return true;
}

bool nd_log_line_parse(const char *bytes, size_t length, struct nd_log_line *ret) {
        struct reader r = {bytes, bytes + length};
        struct nd_log_line line = {.stamp = bytes};

        if (length == 0 || !take_time(&r, &line.time))
                return false;
        line.stamp_length = (size_t) (r.at - bytes);
        if (!take_char(&r, ' ') || !take_stream(&r, &line.stream) || !take_char(&r, ' ') || !take_tags(&r, &line.whole))
                return false;
        if (r.at < r.end && !take_char(&r, ' ')) /* the space may be missing before an empty text */
                return false;
        line.text = r.at;
        line.length = (size_t) (r.end - r.at);
        *ret = line;
        return true;
}
