/* SPDX-License-Identifier: Apache-2.0 */
/* log-line.h - a line of a container's log, as the CRI has it
 *
 *      2016-10-06T00:17:09.669794202Z stdout F a whole line, or the end of one
 *      2016-10-06T00:17:09.669794202+02:00 stderr P:more-tags a piece: more of the same line follows
 *
 * The text is a stranger's and may hold any byte but a line end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum nd_log_line_stream {
        ND_LOG_STDOUT,
        ND_LOG_STDERR,
        ND_LOG_STREAMS,
};

/* Points into the bytes that were given. */
struct nd_log_line {
        uint64_t time; /* nanoseconds since 1970 */
        const char *stamp;
        size_t stamp_length; /* the same, as it was written */
        enum nd_log_line_stream stream;
        bool whole; /* the line ends here */
        const char *text;
        size_t length;
};

/* Bytes of one line, without its end. False when they are none: *ret is untouched. */
[[nodiscard]] bool nd_log_line_parse(const char *bytes, size_t length, struct nd_log_line *ret);

/* A time as RFC 3339 writes it, all of the bytes; from 1970 to 2261. */
[[nodiscard]] bool nd_log_line_time_parse(const char *bytes, size_t length, uint64_t *ret);
