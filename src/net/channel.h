/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h - several streams over one WebSocket connection, as Kubernetes does it; no I/O
 *
 * A message is the number of a channel and bytes for it. By subprotocol:
 *      "", "channel.k8s.io", "v4.channel.k8s.io"            a byte, then the data
 *      "v5.channel.k8s.io"                                  same; 255 and a number: client closes
 *      it
 *      "base64.channel.k8s.io", "v4.base64.channel.k8s.io"  text: a digit, then the data in
 *      base64 */
#pragma once

#include "net/websocket.h"

enum nd_channel_kind {
        ND_CHANNEL_NOTHING, /* all bytes consumed, no event */
        ND_CHANNEL_DATA,
        ND_CHANNEL_FIN,    /* the peer sends no more on this channel */
        ND_CHANNEL_CLOSED, /* the peer sends no more on any channel */
};

struct nd_channel_event {
        enum nd_channel_kind kind;
        unsigned channel;
        const char *bytes; /* points into the input */
        size_t length;
};

struct nd_channel_mux;

/* The protocol is one of the above; output as in nd_websocket_new(). */
struct nd_channel_mux *nd_channel_mux_new(enum nd_websocket_side side, const char *protocol, size_t output);
void nd_channel_mux_free(struct nd_channel_mux *channels);
static inline void nd_channel_mux_done(struct nd_channel_mux **channels) {
        nd_channel_mux_free(*channels);
        *channels = nullptr;
}

/* As nd_websocket_receive(): modifies the input in place. */
[[nodiscard]] struct nd_error *nd_channel_mux_receive(struct nd_channel_mux *channels, char *bytes, size_t length,
                                                      size_t *ret_used, struct nd_channel_event *ret);

/* Bytes that nd_channel_mux_write() takes now. */
size_t nd_channel_mux_room(const struct nd_channel_mux *channels);
void nd_channel_mux_write(struct nd_channel_mux *channels, unsigned channel, const char *bytes, size_t length);

/* Sends the end of this channel to a client that uses v5. */
void nd_channel_mux_end(struct nd_channel_mux *channels, unsigned channel);

/* For the connection as a whole: nd_websocket_close(), nd_websocket_queued(),
 * nd_websocket_sent(). */
struct nd_websocket *nd_channel_mux_websocket(const struct nd_channel_mux *channels);
