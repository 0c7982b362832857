/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-line.c - splitting output into lines: for any sequence of reads, the reassembled log is what
 * the container wrote, no text is longer than the limit, and every line is valid in the CRI log
 * format. The first byte sets the size of the reads. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "mon/line.h"

static void take(struct mon_line_buffer *buffer, bool end, struct nd_text *log) {
        struct mon_line_batch batch;
        size_t at = 0;
        bool more;

        do {
                mon_line_batch_begin(&batch, "stderr", 1);
                more = mon_line_batch_fill(&batch, buffer, &at, end);
                fuzz_require(batch.count <= LINE_VECTORS);
                for (size_t i = 0; i < batch.count; i++)
                        nd_text_append(log, batch.vectors[i].iov_base, batch.vectors[i].iov_len);
        } while (more);
        mon_line_consume(buffer, at);
        fuzz_require(buffer->length < sizeof buffer->bytes); /* the next read has room */
}

/* Reassembles the text as a log reader does. */
static void put_together(const struct nd_text *log, struct nd_text *text) {
        static const char header[] = "1970-01-01T00:00:00.000000001Z stderr ";
        const char *at = nd_text_get(log), *end = at + log->length;

        while (at < end) {
                const char *newline = memchr(at, '\n', (size_t) (end - at));
                bool full;

                fuzz_require(newline && strncmp(at, header, sizeof header - 1) == 0);
                at += sizeof header - 1;
                fuzz_require((at[0] == 'F' || at[0] == 'P') && at[1] == ' ');
                full = at[0] == 'F';
                at += 2;
                fuzz_require(newline - at <= LINE_PIECE);
                nd_text_append(text, at, (size_t) (newline - at));
                if (full)
                        nd_text_append(text, "\n", 1);
                at = newline + 1;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree struct mon_line_buffer *buffer = nd_new(struct mon_line_buffer);
        nd_autotext struct nd_text log = ND_TEXT(SIZE_MAX / 2), text = ND_TEXT(SIZE_MAX / 2);
        size_t most, repeat;

        if (size < 2)
                return 0;
        most = (size_t) data[0] * 100 + 1;
        repeat = data[1] % 8 == 7 ? 300 : 1; /* so that short inputs produce long lines, too */
        data += 2;
        size -= 2;
        for (size_t round = 0; round < repeat; round++) {
                for (size_t at = 0; at < size;) {
                        size_t room = sizeof buffer->bytes - buffer->length, n = size - at;

                        n = n < most ? n : most;
                        n = n < room ? n : room;
                        memcpy(buffer->bytes + buffer->length, data + at, n);
                        buffer->length += n;
                        at += n;
                        take(buffer, false, &log);
                }
        }
        take(buffer, true, &log);
        fuzz_require(buffer->length == 0);
        put_together(&log, &text);
        fuzz_require(text.length == size * repeat);
        for (size_t round = 0; round < repeat; round++)
                fuzz_require(memcmp(nd_text_get(&text) + round * size, data, size) == 0);
        return 0;
}
