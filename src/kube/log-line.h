/* SPDX-License-Identifier: Apache-2.0 */
/* log-line.h - parses a line of a container's log in the CRI's format
 *
 *      2016-10-06T00:17:09.669794202Z stdout F a whole line, or the end of one
 *      2016-10-06T00:17:09.669794202+02:00 stderr P:more-tags a part, the line continues
 *
 * The text is untrusted and may contain any byte except a line end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum nd_log_line_stream {
        ND_LOG_STDOUT,
        ND_LOG_STDERR,
        ND_LOG_STREAMS,
};

/* Points into the caller's bytes. */
struct nd_log_line {
        uint64_t time; /* nanoseconds since 1970 */
        const char *stamp;
        size_t stamp_length; /* the timestamp as written */
        enum nd_log_line_stream stream;
        bool whole; /* the line ends here */
        const char *text;
        size_t length;
};

/* Parses one line without its line end. Returns false if it is invalid; *ret is unchanged then. */
[[nodiscard]] bool nd_log_line_parse(const char *bytes, size_t length, struct nd_log_line *ret);

/* Parses a timestamp of RFC 3339, all of the bytes; from 1970 to 2261. */
[[nodiscard]] bool nd_log_line_time_parse(const char *bytes, size_t length, uint64_t *ret);
