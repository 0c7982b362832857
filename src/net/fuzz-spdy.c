/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-spdy.c - the fuzzer is the peer
 *
 * Each piece begins with a letter and a length of two bytes: 'r' raw bytes; 'b' the plain header
 * block of a SYN_STREAM, which is compressed here to reach the code behind inflate(); 's' an action
 * of the owner; 'd' the peer reads that many bytes.
 * Property: for any input, streams and queued bytes stay within the limits, all bytes are consumed
 * or the connection fails, events belong to streams that existed, and everything is freed at the
 * end. */
#include <endian.h>
#include <string.h>

#include <unit/fuzz.h>

#define ZLIB_CONST
#include <zlib.h>

#include "net/spdy-headers.h"

enum { STREAMS = 4, OUTPUT = 8 << 10 };

static void respond(struct nd_spdy *spdy, const struct nd_spdy_event *event) {
        fuzz_require(event->stream % 2 == 1 || event->kind == ND_SPDY_PING || event->kind == ND_SPDY_GOAWAY);
        if (event->kind == ND_SPDY_OPENED) {
                for (size_t i = 0; i < event->header_count; i++) {
                        fuzz_require(nd_spdy_event_header(event, event->headers[i].name) == event->headers[i].value);
                        fuzz_require(event->headers[i].value[event->headers[i].value_length] == '\0');
                }
                nd_spdy_attach(spdy, event->stream, spdy);
        } else if (event->stream > 0) {
                fuzz_require(event->attachment == spdy);
        }
        if (event->kind == ND_SPDY_DATA) /* echo */
                fuzz_require(nd_spdy_write(spdy, event->stream, event->bytes, event->length) <= event->length);
        if (event->kind == ND_SPDY_RESET)
                fuzz_require(!nd_spdy_open(spdy, event->stream));
}

static bool receive(struct nd_spdy *spdy, const char *bytes, size_t length) {
        for (size_t done = 0;;) {
                nd_autoerror struct nd_error *error = nullptr;
                struct nd_spdy_event event;
                size_t used;

                error = nd_spdy_receive(spdy, bytes + done, length - done, &used, &event);
                done += used;
                fuzz_require(done <= length);
                fuzz_require(nd_spdy_streams(spdy) <= STREAMS);
                fuzz_require(nd_spdy_queued(spdy) <= OUTPUT + ND_SPDY_ANSWERS);
                if (error)
                        return false;
                if (event.kind == ND_SPDY_NOTHING) {
                        fuzz_require(done == length);
                        return true;
                }
                respond(spdy, &event);
        }
}

static bool receive_block(struct nd_spdy *spdy, z_stream *z, const uint8_t *data, size_t size, uint32_t stream) {
        nd_autofree char *frame = nd_calloc(1, size + 1024);
        uint32_t words[3] = {htobe32(0x80030001), 0, htobe32(stream)};
        size_t length;

        z->next_in = data;
        z->avail_in = (uInt) size;
        z->next_out = (Bytef *) frame + 18;
        z->avail_out = (uInt) size + 1024 - 18;
        (void) deflate(z, Z_SYNC_FLUSH);
        length = size + 1024 - z->avail_out;
        words[1] = htobe32((uint32_t) (length - 8));
        memcpy(frame, words, sizeof words);
        return receive(spdy, frame, length);
}

static void move(struct nd_spdy *spdy, const uint8_t *data, size_t size) {
        uint32_t stream = size > 1 ? data[1] : 1;

        switch (size > 0 ? data[0] % 6 : 0) {
        case 0:
                nd_spdy_accept(spdy, stream);
                break;
        case 1:
                nd_spdy_finish(spdy, stream);
                break;
        case 2:
                nd_spdy_reset(spdy, stream, ND_SPDY_CANCEL);
                break;
        case 3:
                nd_spdy_goaway(spdy, ND_SPDY_GOODBYE);
                break;
        case 4:
                nd_spdy_ping(spdy);
                break;
        default:
                fuzz_require(nd_spdy_write(spdy, stream, (const char *) data, size) <= size);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_spdy_done) struct nd_spdy *spdy = nullptr;
        uint32_t stream = 1;
        z_stream z = {};
        bool alive = true;

        fuzz_require(!nd_spdy_new(&(struct nd_spdy_settings) {.streams = STREAMS, .output = OUTPUT}, &spdy));
        fuzz_require(deflateInit(&z, 1) == Z_OK);
        fuzz_require(deflateSetDictionary(&z, (const Bytef *) nd_spdy_dictionary, ND_SPDY_DICTIONARY) == Z_OK);
        for (size_t i = 0; alive && i + 3 <= size;) {
                size_t n = (size_t) data[i + 1] << 8 | data[i + 2];
                const uint8_t *piece = data + i + 3;
                const char *output;

                n = n < size - i - 3 ? n : size - i - 3;
                if (data[i] == 'b') {
                        alive = receive_block(spdy, &z, piece, n, stream);
                        stream += 2;
                } else if (data[i] == 's') {
                        move(spdy, piece, n);
                } else if (data[i] == 'd') {
                        size_t queued = nd_spdy_output(spdy, &output);

                        (void) nd_spdy_sent(spdy, n < queued ? n : queued);
                } else {
                        alive = receive(spdy, (const char *) piece, n);
                }
                i += n + 3;
        }
        (void) deflateEnd(&z);
        return 0;
}
