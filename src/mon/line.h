/* SPDX-License-Identifier: Apache-2.0 */
/* line.h - a container's output cut into the lines of a CRI log
 *
 *      2016-10-06T00:17:09.669794202Z stdout F a whole line, or the end of one
 *      2016-10-06T00:17:09.669794202Z stdout P a piece: more of the same line follows
 *
 * Without I/O and without memory of its own: the buffer is filled by whoever reads, and cut into vectors that point into it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
        LINE_PIECE = 16 * 1024, /* most bytes of a line's text; longer ones are cut */
        LINE_TIMESTAMP = 30,    /* "2016-10-06T00:17:09.669794202Z" */
        LINE_HEADER = 48,
        LINE_VECTORS = 192, /* of one batch */
};

/* What one stream has said and the log has not got. */
struct mon_line_buffer {
        size_t length;
        char bytes[LINE_PIECE + 1]; /* one more: a line of just LINE_PIECE bytes is whole when its end follows */
};

/* One batch for writev(); every line in it is whole. */
struct mon_line_batch {
        char full[LINE_HEADER], partial[LINE_HEADER];
        struct iovec vectors[LINE_VECTORS];
        size_t count;
        size_t lines;
};

/* The time of the log: UTC, nanoseconds since 1970. */
void mon_line_timestamp(uint64_t nanoseconds, char ret[static LINE_TIMESTAMP + 1]);

/* Begins a batch of one stream ("stdout", "stderr"), all of whose lines bear this time. */
void mon_line_batch_begin(struct mon_line_batch *batch, const char *stream, uint64_t nanoseconds);

/* Adds lines of the buffer from *at on, and sets *at behind the last one. True when the batch is full and there may be more: write it, begin the next one
 * and call again. When it gives false, mon_line_consume() moves what is left to the front. At the end of a stream the rest becomes a piece. */
bool mon_line_batch_fill(struct mon_line_batch *batch, const struct mon_line_buffer *buffer, size_t *at, bool end);
void mon_line_consume(struct mon_line_buffer *buffer, size_t at);
