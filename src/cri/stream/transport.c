/* SPDX-License-Identifier: Apache-2.0 */
/* transport.c - see transport.h
 *
 * Theory of operation
 *   With WebSocket the client opens no streams: the request determines them. They are reported
 *   first, as if the client had opened them (@next iterates over the channels), before any data is
 *   read. A stream's ID is its channel number plus one. The channels are:
 *      exec, attach    0 stdin, 1 stdout, 2 stderr, 3 result, 4 terminal size
 *      port-forward    2n data and 2n + 1 errors of the request's n-th port; each starts with the
 *                      port, two bytes, little endian; in version 5 either side may end a channel,
 *                      as with TCP
 * Owns       the codec. */
#include "cri/stream/transport.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/channel.h"
#include "net/spdy.h"

enum {
        STDIO_CHANNELS = 5,
        CHANNELS = 2 * STREAM_PORTS, /* the larger maximum of the two kinds */
        PORT_TEXT = 24,
};

struct cri_transport {
        struct nd_spdy *spdy; /* exactly one of the two is set */
        struct nd_channel_mux *channels;
        bool over;
        /* WebSocket only */
        enum cri_stream_kind kind;
        bool wanted[STDIO_CHANNELS];
        uint16_t ports[STREAM_PORTS];
        bool ends;    /* a channel's end is sent: port-forward in version 5 */
        size_t count; /* number of channels */
        size_t next;  /* next channel to report */
        void *attachments[CHANNELS];
        char port[PORT_TEXT], identity[PORT_TEXT]; /* of the current event */
};

struct nd_error *cri_transport_new_spdy(const struct cri_stream_session_type *type, struct cri_transport **ret) {
        struct nd_spdy *spdy;

        nd_try(nd_spdy_new(&(struct nd_spdy_settings) {.streams = type->streams}, &spdy));
        *ret = nd_new(struct cri_transport);
        (*ret)->spdy = spdy;
        return nullptr;
}

struct cri_transport *cri_transport_new_websocket(const struct cri_stream_request *request, const char *protocol) {
        struct cri_transport *transport = nd_new(struct cri_transport);

        transport->channels = nd_channel_mux_new(ND_WEBSOCKET_SERVER, protocol, 0);
        transport->kind = request->kind;
        if (request->kind != STREAM_FORWARD) {
                const bool wanted[STDIO_CHANNELS] = {request->input, request->output, request->errors, true,
                                                     request->terminal};

                memcpy(transport->wanted, wanted, sizeof wanted);
                transport->count = STDIO_CHANNELS;
                /* Old clients wait for a first message: send an empty one on the first channel that
                 * carries our data. */
                nd_channel_mux_write(transport->channels, request->output ? 1 : request->errors ? 2 : 3, nullptr, 0);
                return transport;
        }
        transport->ends = nd_streq(protocol, "v5.channel.k8s.io");
        transport->count = 2 * request->port_count;
        memcpy(transport->ports, request->ports, sizeof transport->ports);
        for (size_t i = 0; i < transport->count; i++) {
                uint16_t port = htole16(transport->ports[i / 2]);

                nd_channel_mux_write(transport->channels, (unsigned) i, (const char *) &port, sizeof port);
        }
        return transport;
}

void cri_transport_free(struct cri_transport *transport) {
        if (!transport)
                return;
        nd_spdy_free(transport->spdy);
        nd_channel_mux_free(transport->channels);
        free(transport);
}

/* ---- in ---- */

static struct nd_error *receive_spdy(struct cri_transport *transport, const char *bytes, size_t length, size_t *ret_used,
                                     bool *ret_any, struct cri_stream_event *ret) {
        static const enum cri_stream_event_kind kinds[] = {[ND_SPDY_OPENED] = STREAM_OPENED,
                                                           [ND_SPDY_DATA] = STREAM_DATA,
                                                           [ND_SPDY_FIN] = STREAM_FIN,
                                                           [ND_SPDY_RESET] = STREAM_RESET};
        struct nd_spdy_event event;

        *ret_used = 0;
        do { /* skip events that do not concern sessions */
                size_t used;

                nd_try(nd_spdy_receive(transport->spdy, bytes + *ret_used, length - *ret_used, &used, &event));
                *ret_used += used;
                if (event.kind == ND_SPDY_NOTHING)
                        return nullptr;
        } while (event.kind > ND_SPDY_RESET);
        *ret = (struct cri_stream_event) {.kind = kinds[event.kind],
                                          .stream = event.stream,
                                          .attachment = event.attachment,
                                          .type = nd_spdy_event_header(&event, "streamtype") ?: "",
                                          .port = nd_spdy_event_header(&event, "port") ?: "",
                                          .identity = nd_spdy_event_header(&event, "requestid") ?: "",
                                          .bytes = event.bytes,
                                          .length = event.length};
        *ret_any = true;
        return nullptr;
}

/* Reports the next stream that the request implies; false if all were reported. */
static bool report_stream(struct cri_transport *transport, struct cri_stream_event *ret) {
        static const char *const names[STDIO_CHANNELS] = {"stdin", "stdout", "stderr", "error", "resize"};
        bool forward = transport->kind == STREAM_FORWARD;
        size_t channel;

        while (!forward && transport->next < transport->count && !transport->wanted[transport->next])
                transport->next++;
        if (transport->next >= transport->count)
                return false;
        channel = transport->next++;
        *ret = (struct cri_stream_event) {.kind = STREAM_OPENED, .stream = (uint32_t) channel + 1, .port = "", .identity = ""};
        ret->type = forward ? channel % 2 == 0 ? "data" : "error" : names[channel];
        if (forward) {
                (void) snprintf(transport->port, sizeof transport->port, "%u", transport->ports[channel / 2]);
                (void) snprintf(transport->identity, sizeof transport->identity, "%zu", channel / 2);
                ret->port = transport->port;
                ret->identity = transport->identity;
        }
        return true;
}

static struct nd_error *receive_channels(struct cri_transport *transport, char *bytes, size_t length, size_t *ret_used,
                                         bool *ret_any, struct cri_stream_event *ret) {
        struct nd_channel_event event = {};

        *ret_used = 0;
        *ret_any = report_stream(transport, ret);
        if (*ret_any)
                return nullptr;
        while (!*ret_any) {
                size_t used;

                nd_try(nd_channel_mux_receive(transport->channels, bytes + *ret_used, length - *ret_used, &used, &event));
                *ret_used += used;
                transport->over = transport->over || event.kind == ND_CHANNEL_CLOSED;
                if (event.kind == ND_CHANNEL_NOTHING || event.kind == ND_CHANNEL_CLOSED)
                        return nullptr;
                *ret_any = event.channel < transport->count;
        }
        *ret = (struct cri_stream_event) {.kind = event.kind == ND_CHANNEL_FIN ? STREAM_FIN : STREAM_DATA,
                                          .stream = event.channel + 1,
                                          .attachment = transport->attachments[event.channel],
                                          .type = "",
                                          .port = "",
                                          .identity = "",
                                          .bytes = event.bytes,
                                          .length = event.length};
        return nullptr;
}

struct nd_error *cri_transport_receive(struct cri_transport *transport, char *bytes, size_t length, size_t *ret_used,
                                       bool *ret_any, struct cri_stream_event *ret) {
        *ret = (struct cri_stream_event) {};
        *ret_any = false;
        if (transport->spdy)
                return receive_spdy(transport, bytes, length, ret_used, ret_any, ret);
        return receive_channels(transport, bytes, length, ret_used, ret_any, ret);
}

bool cri_transport_is_over(const struct cri_transport *transport) {
        return transport->over;
}

/* ---- out ---- */

void cri_transport_accept(struct cri_transport *transport, uint32_t stream) {
        if (transport->spdy)
                nd_spdy_accept(transport->spdy, stream);
}

void cri_transport_refuse(struct cri_transport *transport, uint32_t stream) {
        if (transport->spdy)
                nd_spdy_reset(transport->spdy, stream, ND_SPDY_REFUSED_STREAM);
}

void cri_transport_attach(struct cri_transport *transport, uint32_t stream, void *attachment) {
        if (transport->spdy)
                nd_spdy_attach(transport->spdy, stream, attachment);
        else if (stream > 0 && stream <= transport->count)
                transport->attachments[stream - 1] = attachment;
}

size_t cri_transport_room(const struct cri_transport *transport) {
        return transport->spdy ? nd_spdy_room(transport->spdy) : nd_channel_mux_room(transport->channels);
}

void cri_transport_write(struct cri_transport *transport, uint32_t stream, const char *bytes, size_t length) {
        if (transport->spdy)
                (void) !nd_spdy_write(transport->spdy, stream, bytes, length);
        else if (stream > 0 && stream <= transport->count)
                nd_channel_mux_write(transport->channels, stream - 1, bytes, length);
}

/* Before version 5, WebSocket cannot close one channel: the connection's end closes all. Clients of
 * exec and attach do not expect the message either: the result is the end. */
void cri_transport_end_stream(struct cri_transport *transport, uint32_t stream) {
        if (transport->spdy)
                nd_spdy_finish(transport->spdy, stream);
        else if (transport->ends && stream > 0 && stream <= transport->count)
                nd_channel_mux_end(transport->channels, stream - 1);
}

void cri_transport_goodbye(struct cri_transport *transport) {
        if (transport->spdy)
                nd_spdy_goaway(transport->spdy, ND_SPDY_GOODBYE);
        else
                nd_websocket_close(nd_channel_mux_websocket(transport->channels), ND_WEBSOCKET_NORMAL);
}

size_t cri_transport_queued(const struct cri_transport *transport, const char **ret_bytes) {
        return transport->spdy ? nd_spdy_output(transport->spdy, ret_bytes)
                               : nd_websocket_queued(nd_channel_mux_websocket(transport->channels), ret_bytes);
}

bool cri_transport_sent(struct cri_transport *transport, size_t length) {
        return transport->spdy ? nd_spdy_sent(transport->spdy, length)
                               : nd_websocket_sent(nd_channel_mux_websocket(transport->channels), length);
}
