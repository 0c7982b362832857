/* SPDX-License-Identifier: Apache-2.0 */
/* channel.c - see channel.h
 *
 * Theory of operation
 *   A message comes in pieces. Its first byte is the channel (@NUMBER). Then follow data (@DATA)
 *   or, if the protocol can close a channel and the first byte was 255, the number of the closed
 *   channel (@ENDING). Base64 is decoded piece by piece and in place: the output is shorter than
 *   the input. */
#include "net/channel.h"

#include <nettle/base64.h>
#include <string.h>

#include "base/text.h"

enum {
        END = 255,
        DECODED_AT_ONCE = 1024,
        MESSAGE = ND_WEBSOCKET_DATA_FRAME,
};

enum step {
        NUMBER,
        DATA,
        ENDING,
};

struct nd_channel_mux {
        struct nd_websocket *websocket;
        bool base64, ends; /* features of the protocol */
        enum step step;
        unsigned channel;
        struct base64_decode_ctx decoder; /* of the message */
};

struct nd_channel_mux *nd_channel_mux_new(enum nd_websocket_side side, const char *protocol, size_t output) {
        struct nd_channel_mux *channels = nd_new(struct nd_channel_mux);

        channels->websocket = nd_websocket_new(side, output);
        channels->base64 = nd_streq(protocol, "base64.channel.k8s.io") || nd_streq(protocol, "v4.base64.channel.k8s.io");
        channels->ends = nd_streq(protocol, "v5.channel.k8s.io");
        return channels;
}

void nd_channel_mux_free(struct nd_channel_mux *channels) {
        if (!channels)
                return;
        nd_websocket_free(channels->websocket);
        free(channels);
}

struct nd_websocket *nd_channel_mux_websocket(const struct nd_channel_mux *channels) {
        return channels->websocket;
}

/* ---- input ---- */

static struct nd_error *fail(const struct nd_channel_mux *channels, const char *words) {
        nd_websocket_close(channels->websocket, ND_WEBSOCKET_PROTOCOL_ERROR);
        return nd_error_new(ND_INVALID, 0, "%s", words);
}

static struct nd_error *take_number(struct nd_channel_mux *channels, unsigned char byte) {
        if (channels->base64 && (byte < '0' || byte > '9'))
                return fail(channels, "message does not begin with a channel digit");
        channels->channel = channels->base64 ? byte - '0' : byte;
        channels->step = channels->ends && byte == END ? ENDING : DATA;
        base64_decode_init(&channels->decoder);
        return nullptr;
}

static struct nd_error *decode(struct nd_channel_mux *channels, char *bytes, size_t length, size_t *ret_length) {
        uint8_t plain[BASE64_DECODE_LENGTH(DECODED_AT_ONCE)];
        size_t done = 0;

        for (size_t at = 0, n; at < length; at += n) {
                size_t got = sizeof plain;

                n = length - at < DECODED_AT_ONCE ? length - at : DECODED_AT_ONCE;
                if (!base64_decode_update(&channels->decoder, &got, plain, n, bytes + at))
                        return fail(channels, "message is not valid base64");
                memcpy(bytes + done, plain, got);
                done += got;
        }
        *ret_length = done;
        return nullptr;
}

/* Processes a piece of a message, which may be the number only. */
static struct nd_error *take_piece(struct nd_channel_mux *channels, const struct nd_websocket_event *piece, char *bytes,
                                   struct nd_channel_event *ret) {
        size_t length = piece->length;

        if (piece->begins)
                channels->step = NUMBER;
        if (channels->step == NUMBER && length > 0) {
                nd_try(take_number(channels, (unsigned char) *bytes));
                bytes++;
                length--;
        }
        if (channels->step == ENDING && length > 0) {
                *ret = (struct nd_channel_event) {.kind = ND_CHANNEL_FIN, .channel = (unsigned char) *bytes};
                /* Discards further bytes, for a channel that does not exist. */
                channels->step = DATA;
                return nullptr;
        }
        if (channels->step != DATA || length == 0)
                return nullptr;
        if (channels->base64)
                nd_try(decode(channels, bytes, length, &length));
        *ret = (struct nd_channel_event) {.kind = length > 0 ? ND_CHANNEL_DATA : ND_CHANNEL_NOTHING,
                                          .channel = channels->channel,
                                          .bytes = bytes,
                                          .length = length};
        return nullptr;
}

struct nd_error *nd_channel_mux_receive(struct nd_channel_mux *channels, char *bytes, size_t length, size_t *ret_used,
                                        struct nd_channel_event *ret) {
        *ret = (struct nd_channel_event) {};
        *ret_used = 0;
        while (ret->kind == ND_CHANNEL_NOTHING) {
                struct nd_websocket_event event;
                size_t used;

                nd_try(nd_websocket_receive(channels->websocket, bytes + *ret_used, length - *ret_used, &used, &event));
                *ret_used += used;
                if (event.kind == ND_WEBSOCKET_NOTHING)
                        return nullptr;
                if (event.kind == ND_WEBSOCKET_CLOSED)
                        ret->kind = ND_CHANNEL_CLOSED;
                else
                        nd_try(take_piece(channels, &event, bytes + (event.bytes - bytes), ret));
        }
        return nullptr;
}

/* ---- output ---- */

size_t nd_channel_mux_room(const struct nd_channel_mux *channels) {
        size_t room = nd_websocket_room(channels->websocket);

        if (room < 8)
                return 0;
        return channels->base64 ? (room - 1) / 4 * 3 : room - 1;
}

static void write_message(struct nd_channel_mux *channels, unsigned channel, const char *bytes, size_t length) {
        char message[MESSAGE + 8];

        message[0] = (char) (channels->base64 ? '0' + channel : channel);
        if (channels->base64)
                base64_encode_raw(message + 1, length, (const uint8_t *) bytes);
        else if (length > 0)
                memcpy(message + 1, bytes, length);
        nd_websocket_send(channels->websocket, channels->base64, message,
                          1 + (channels->base64 ? BASE64_ENCODE_RAW_LENGTH(length) : length));
}

void nd_channel_mux_write(struct nd_channel_mux *channels, unsigned channel, const char *bytes, size_t length) {
        size_t most = channels->base64 ? (MESSAGE - 1) / 4 * 3 : MESSAGE - 1, n;

        do {
                n = length < most ? length : most;
                write_message(channels, channel, bytes, n);
                bytes += n;
                length -= n;
        } while (length > 0);
}

void nd_channel_mux_end(struct nd_channel_mux *channels, unsigned channel) {
        const char message[] = {(char) END, (char) channel};

        nd_websocket_send(channels->websocket, false, message, sizeof message);
}
