/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-websocket.c - the fuzzer is the peer
 *
 * The first byte selects the protocol, and its highest bit our side; then each piece begins with a
 * letter and a length of two bytes: 'r' raw bytes; 'm' a message, which is masked and framed here
 * to reach the code behind the framing; 'w' we write that many bytes; 'd' the peer reads that many.
 * Property: for any input, the queue stays within its limit, all bytes are consumed or the
 * connection fails, events point into the input, and everything is freed at the end. */
#include <string.h>

#include <unit/fuzz.h>

#include "net/channel.h"

enum { OUTPUT = 8 << 10 };

static const char *const protocols[] = {"", "v4.channel.k8s.io", "v5.channel.k8s.io", "base64.channel.k8s.io"};

static void require_bounds(const struct nd_channel_mux *channels) {
        const char *bytes;
        size_t queued = nd_websocket_queued(nd_channel_mux_websocket(channels), &bytes);

        fuzz_require(queued <= OUTPUT + ND_WEBSOCKET_ANSWERS && (queued == 0) == (bytes == nullptr));
        fuzz_require(nd_channel_mux_room(channels) <= OUTPUT);
}

static bool receive(struct nd_channel_mux *channels, char *bytes, size_t length) {
        for (size_t done = 0;;) {
                nd_autoerror struct nd_error *error = nullptr;
                struct nd_channel_event event;
                size_t used;

                error = nd_channel_mux_receive(channels, bytes + done, length - done, &used, &event);
                require_bounds(channels);
                if (error)
                        return false;
                if (event.kind == ND_CHANNEL_DATA)
                        fuzz_require(event.length > 0 && event.bytes >= bytes && event.bytes + event.length <= bytes + length);
                fuzz_require(event.channel <= 255);
                done += used;
                fuzz_require(done <= length);
                if (event.kind == ND_CHANNEL_CLOSED)
                        return false;
                if (event.kind == ND_CHANNEL_NOTHING) {
                        fuzz_require(done == length);
                        return true;
                }
        }
}

static bool receive_message(struct nd_channel_mux *channels, const uint8_t *data, size_t size) {
        nd_autofree char *frame = nd_calloc(1, size + 16);
        size_t at = 0;

        frame[at++] = (char) 0x82;
        if (size < 126) {
                frame[at++] = (char) (0x80 | size);
        } else {
                frame[at++] = (char) (0x80 | 126);
                frame[at++] = (char) (size >> 8);
                frame[at++] = (char) size;
        }
        at += 4; /* a mask of zeros */
        if (size > 0)
                memcpy(frame + at, data, size);
        return receive(channels, frame, at + size);
}

static bool move(struct nd_channel_mux *channels, char letter, const uint8_t *data, size_t size) {
        static char zeros[65536];
        struct nd_websocket *websocket = nd_channel_mux_websocket(channels);
        nd_autofree char *copy = nullptr;
        const char *bytes;
        size_t amount = size > 1 ? (size_t) data[0] << 8 | data[1] : size, most;

        switch (letter) {
        case 'm':
                return receive_message(channels, data, size);
        case 'w':
                most = nd_channel_mux_room(channels);
                if (most > 0)
                        nd_channel_mux_write(channels, 1, zeros, amount < most ? amount : most);
                require_bounds(channels);
                return true;
        case 'd':
                most = nd_websocket_queued(websocket, &bytes);
                (void) !nd_websocket_sent(websocket, amount < most ? amount : most);
                require_bounds(channels);
                return true;
        default:
                copy = nd_calloc(1, size + 1);
                if (size > 0)
                        memcpy(copy, data, size);
                return receive(channels, copy, size);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_channel_mux_done) struct nd_channel_mux *channels = nullptr;
        size_t length;

        if (size < 1)
                return 0;
        channels = nd_channel_mux_new(data[0] & 0x80 ? ND_WEBSOCKET_CLIENT : ND_WEBSOCKET_SERVER,
                                      protocols[data[0] % nd_count_of(protocols)], OUTPUT);
        for (data++, size--; size >= 3; data += 3 + length, size -= 3 + length) {
                length = (size_t) data[1] << 8 | data[2];
                length = length < size - 3 ? length : size - 3;
                if (!move(channels, (char) data[0], data + 3, length))
                        break;
        }
        return 0;
}
