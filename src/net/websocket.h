/* SPDX-License-Identifier: Apache-2.0 */
/* websocket.h - one WebSocket connection (RFC 6455), the server's side or the client's, without any I/O
 *
 * Bytes from the peer go in and give events; what the owner says gives bytes for the peer. The owner pulls, as with net/spdy.h. Data is passed on in the
 * pieces it comes in and never stored. Pings are answered here. Extensions are not negotiated, so a frame that uses one is an error. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
        ND_WEBSOCKET_CONTROL = 125,    /* most bytes of a control frame */
        ND_WEBSOCKET_FRAME = 64 << 20, /* most bytes of a data frame that comes in */
        ND_WEBSOCKET_OUTPUT =
                256 << 10, /* bytes that wait for the peer: where data stops being taken, when the settings do not say */
        ND_WEBSOCKET_ANSWERS =
                16 << 10, /* and that much more for answers: a peer that asks on without reading them is cut off */
        ND_WEBSOCKET_DATA_FRAME = 32 << 10, /* most data in one frame that we send */
        ND_WEBSOCKET_HEADER = 14,           /* most bytes before it */
        ND_WEBSOCKET_KEY = 25,              /* what a client is answered by, with its end */
        ND_WEBSOCKET_ACCEPT = 29,           /* the answer to it, likewise */
};

enum nd_websocket_status { /* why a connection is closed; RFC 6455 section 7.4.1 */
                           ND_WEBSOCKET_NORMAL = 1000,
                           ND_WEBSOCKET_PROTOCOL_ERROR = 1002,
                           ND_WEBSOCKET_TOO_BIG = 1009,
                           ND_WEBSOCKET_INTERNAL_ERROR = 1011,
};

enum nd_websocket_kind {
        ND_WEBSOCKET_NOTHING, /* all bytes are taken, none gave an event */
        ND_WEBSOCKET_DATA,    /* a piece of a message, within the bytes that were given */
        ND_WEBSOCKET_CLOSED,  /* the peer has said goodbye, which is answered; nothing follows */
};

struct nd_websocket_event {
        enum nd_websocket_kind kind;
        bool begins, ends; /* the message does, with this piece */
        const char *bytes;
        size_t length;
};

struct nd_websocket;

enum nd_websocket_side {
        ND_WEBSOCKET_SERVER,
        ND_WEBSOCKET_CLIENT, /* masks what it sends, and takes nothing that is masked */
};

struct nd_websocket *nd_websocket_new(enum nd_websocket_side side, size_t output); /* 0 = ND_WEBSOCKET_OUTPUT */
void nd_websocket_free(struct nd_websocket *websocket);
static inline void nd_websocket_done(struct nd_websocket **websocket) {
        nd_websocket_free(*websocket);
        *websocket = nullptr;
}

/* A new key, random as the standard wants it. */
void nd_websocket_key(char ret[static ND_WEBSOCKET_KEY]);

/* What a server answers to Sec-WebSocket-Key. False for a key that is none. */
[[nodiscard]] bool nd_websocket_accept(const char *key, char ret[static ND_WEBSOCKET_ACCEPT]);

/* Takes bytes up to the next event; they are unmasked where they are. An error means that the peer does not speak WebSocket or broke a bound: a close is
 * queued; send what is left, close. */
[[nodiscard]] struct nd_error *nd_websocket_receive(struct nd_websocket *websocket, char *bytes, size_t length,
                                                    size_t *ret_used, struct nd_websocket_event *ret);

/* Queues one message. The caller has looked at nd_websocket_room(): one that does not fit fails the connection. */
void nd_websocket_send(struct nd_websocket *websocket, bool text, const char *bytes, size_t length);

/* The payload of one message that fits now. */
size_t nd_websocket_room(const struct nd_websocket *websocket);

void nd_websocket_close(struct nd_websocket *websocket, enum nd_websocket_status status); /* nothing is sent after it */

/* The next bytes to send; valid until the next call of any other function here; 0 when there is nothing. */
size_t nd_websocket_queued(const struct nd_websocket *websocket, const char **ret_bytes);

/* So many of them are sent. True when half of the room became free by it. */
[[nodiscard]] bool nd_websocket_sent(struct nd_websocket *websocket, size_t length);
