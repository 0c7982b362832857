/* SPDX-License-Identifier: Apache-2.0 */
/* websocket.h - one WebSocket connection (RFC 6455), the server's side or the client's, no I/O
 *
 * Bytes from the peer go in and give events; calls give bytes for the peer. The owner pulls, as
 * with net/spdy.h. Data is passed on in the pieces it comes in and never stored. Pings are answered
 * here. Extensions are not negotiated, so a frame that uses one is an error. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
        ND_WEBSOCKET_CONTROL = 125,      /* maximum size of a control frame */
        ND_WEBSOCKET_FRAME = 64 << 20,   /* maximum size of an incoming data frame */
        ND_WEBSOCKET_OUTPUT = 256 << 10, /* default limit of queued data */
        /* Additional room for answers; a peer that exceeds it is disconnected. */
        ND_WEBSOCKET_ANSWERS = 16 << 10,
        ND_WEBSOCKET_DATA_FRAME = 32 << 10, /* maximum data in one frame that we send */
        ND_WEBSOCKET_HEADER = 14,           /* maximum size of a frame header */
        ND_WEBSOCKET_KEY = 25,              /* a client's key, with its terminator */
        ND_WEBSOCKET_ACCEPT = 29,           /* the server's response to it, likewise */
};

enum nd_websocket_status { /* close codes; RFC 6455 section 7.4.1 */
                           ND_WEBSOCKET_NORMAL = 1000,
                           ND_WEBSOCKET_PROTOCOL_ERROR = 1002,
                           ND_WEBSOCKET_TOO_BIG = 1009,
                           ND_WEBSOCKET_INTERNAL_ERROR = 1011,
};

enum nd_websocket_kind {
        ND_WEBSOCKET_NOTHING, /* all bytes consumed, no event */
        ND_WEBSOCKET_DATA,    /* a piece of a message; points into the input */
        /* The peer has sent a close frame, which is answered; nothing follows. */
        ND_WEBSOCKET_CLOSED,
};

struct nd_websocket_event {
        enum nd_websocket_kind kind;
        bool begins, ends; /* this piece is the message's first or last one */
        const char *bytes;
        size_t length;
};

struct nd_websocket;

enum nd_websocket_side {
        ND_WEBSOCKET_SERVER,
        ND_WEBSOCKET_CLIENT, /* masks its frames, and rejects masked ones */
};

/* 0 = ND_WEBSOCKET_OUTPUT. */
struct nd_websocket *nd_websocket_new(enum nd_websocket_side side, size_t output);
void nd_websocket_free(struct nd_websocket *websocket);

/* A new random key. */
void nd_websocket_key(char ret[static ND_WEBSOCKET_KEY]);

/* The response to Sec-WebSocket-Key. False for an invalid key. */
[[nodiscard]] bool nd_websocket_accept(const char *key, char ret[static ND_WEBSOCKET_ACCEPT]);

/* Consumes bytes up to the next event and unmasks them in place. An error means that the peer does
 * not speak WebSocket or exceeded a limit: a close frame is queued; send the queue, then close. */
[[nodiscard]] struct nd_error *nd_websocket_receive(struct nd_websocket *websocket, char *bytes, size_t length,
                                                    size_t *ret_used, struct nd_websocket_event *ret);

/* Queues one message. The caller has checked nd_websocket_room(): a message that does not fit fails
 * the connection. */
void nd_websocket_send(struct nd_websocket *websocket, bool text, const char *bytes, size_t length);

/* The largest payload that fits now. */
size_t nd_websocket_room(const struct nd_websocket *websocket);

/* Nothing is sent after it. */
void nd_websocket_close(struct nd_websocket *websocket, enum nd_websocket_status status);

/* The next bytes to send; valid until the next call of any other function here; 0 if there are
 * none. */
size_t nd_websocket_queued(const struct nd_websocket *websocket, const char **ret_bytes);

/* Removes sent bytes from the queue. Returns true if this freed half of the room. */
[[nodiscard]] bool nd_websocket_sent(struct nd_websocket *websocket, size_t length);
