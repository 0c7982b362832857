/* SPDX-License-Identifier: Apache-2.0 */
/* line.h - splits a container's output into lines of the CRI log format
 *
 *      2016-10-06T00:17:09.669794202Z stdout F a full line, or the end of one
 *      2016-10-06T00:17:09.669794202Z stdout P a partial line: more of it follows
 *
 * No I/O and no allocations: the caller fills the buffer, which is split into vectors that point
 * into it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
        LINE_PIECE = 16 * 1024, /* limit of a line's text; longer lines are split */
        LINE_TIMESTAMP = 30,    /* "2016-10-06T00:17:09.669794202Z" */
        LINE_HEADER = 48,
        LINE_VECTORS = 192, /* per batch */
};

/* Output of one stream that is not in the log yet. */
struct mon_line_buffer {
        size_t length;
        /* one more: a line of LINE_PIECE bytes is full when its newline follows */
        char bytes[LINE_PIECE + 1];
};

/* One batch for writev(), with full log lines only. */
struct mon_line_batch {
        char full[LINE_HEADER], partial[LINE_HEADER];
        struct iovec vectors[LINE_VECTORS];
        size_t count;
        size_t lines;
};

/* Formats a timestamp of the log: UTC, nanoseconds since 1970. */
void mon_line_timestamp(uint64_t nanoseconds, char ret[static LINE_TIMESTAMP + 1]);

/* Begins a batch of one stream ("stdout", "stderr"), with one timestamp for all its lines. */
void mon_line_batch_begin(struct mon_line_batch *batch, const char *stream, uint64_t nanoseconds);

/* Adds lines of the buffer from *at on, and sets *at behind the last one. Returns true when the
 * batch is full and there may be more: write it, begin the next one and call again. When it returns
 * false, mon_line_consume() moves the rest to the front. At the end of a stream the rest becomes a
 * partial line. */
bool mon_line_batch_fill(struct mon_line_batch *batch, const struct mon_line_buffer *buffer, size_t *at, bool end);
void mon_line_consume(struct mon_line_buffer *buffer, size_t at);
