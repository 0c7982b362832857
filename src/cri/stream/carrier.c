/* SPDX-License-Identifier: Apache-2.0 */
/* carrier.c - see carrier.h
 *
 * Theory of operation
 *   With WebSocket nobody opens streams: which there are is agreed by the request. So they are told first, as if the client had opened them (@next walks over
 *   the channels), before any byte is read. A stream's number is its channel's and one. The channels are
 *      exec, attach    0 input, 1 output, 2 errors, 3 the verdict, 4 the terminal's size
 *      port-forward    2n data and 2n + 1 errors of the request's n-th port; each begins with the port, two bytes, the low one first
 * Owns       the codec. */
#include "cri/stream/carrier.h"

#include <stdio.h>
#include <string.h>

#include "net/channel.h"
#include "net/spdy.h"

enum {
        REMOTE_CHANNELS = 5,
        CHANNELS = 2 * STREAM_PORTS, /* more than the others have */
        PORT_TEXT = 24,
};

struct carrier {
        struct nd_spdy *spdy; /* one of the two */
        struct nd_channels *channels;
        bool over;
        /* WebSocket only */
        enum stream_kind kind;
        bool wanted[REMOTE_CHANNELS];
        uint16_t ports[STREAM_PORTS];
        size_t count; /* of channels */
        size_t next;  /* that is to be told */
        void *attachments[CHANNELS];
        char port[PORT_TEXT], identity[PORT_TEXT]; /* of the event */
};

struct nd_error *carrier_new_spdy(const struct session_type *type, struct carrier **ret) {
        struct nd_spdy *spdy;

        nd_try(nd_spdy_new(&(struct nd_spdy_settings) {.streams = type->streams}, &spdy));
        *ret = nd_new(struct carrier);
        (*ret)->spdy = spdy;
        return nullptr;
}

struct carrier *carrier_new_websocket(const struct stream_request *request, const char *protocol) {
        struct carrier *carrier = nd_new(struct carrier);

        carrier->channels = nd_channels_new(ND_WEBSOCKET_SERVER, protocol, 0);
        carrier->kind = request->kind;
        if (request->kind != STREAM_FORWARD) {
                const bool wanted[REMOTE_CHANNELS] = {request->input, request->output, request->errors, true,
                                                      request->terminal};

                memcpy(carrier->wanted, wanted, sizeof wanted);
                carrier->count = REMOTE_CHANNELS;
                /* Clients of old wait for a first message: an empty one, on the first channel that has any from us. */
                nd_channels_write(carrier->channels, request->output ? 1 : request->errors ? 2 : 3, nullptr, 0);
                return carrier;
        }
        carrier->count = 2 * request->port_count;
        memcpy(carrier->ports, request->ports, sizeof carrier->ports);
        for (size_t i = 0; i < carrier->count; i++) {
                uint16_t port = htole16(carrier->ports[i / 2]);

                nd_channels_write(carrier->channels, (unsigned) i, (const char *) &port, sizeof port);
        }
        return carrier;
}

void carrier_free(struct carrier *carrier) {
        if (!carrier)
                return;
        nd_spdy_free(carrier->spdy);
        nd_channels_free(carrier->channels);
        free(carrier);
}

/* ---- in ---- */

static struct nd_error *receive_spdy(struct carrier *carrier, const char *bytes, size_t length, size_t *ret_used,
                                     bool *ret_any, struct stream_event *ret) {
        static const enum stream_event_kind kinds[] = {[ND_SPDY_OPENED] = STREAM_OPENED,
                                                       [ND_SPDY_DATA] = STREAM_DATA,
                                                       [ND_SPDY_FIN] = STREAM_FIN,
                                                       [ND_SPDY_RESET] = STREAM_RESET};
        struct nd_spdy_event event;

        *ret_used = 0;
        do { /* some are no session's business */
                size_t used;

                nd_try(nd_spdy_receive(carrier->spdy, bytes + *ret_used, length - *ret_used, &used, &event));
                *ret_used += used;
                if (event.kind == ND_SPDY_NOTHING)
                        return nullptr;
        } while (event.kind > ND_SPDY_RESET);
        *ret = (struct stream_event) {.kind = kinds[event.kind],
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

/* The next stream that follows from the request; false when all were told. */
static bool tell_stream(struct carrier *carrier, struct stream_event *ret) {
        static const char *const names[REMOTE_CHANNELS] = {"stdin", "stdout", "stderr", "error", "resize"};
        bool forward = carrier->kind == STREAM_FORWARD;
        size_t channel;

        while (!forward && carrier->next < carrier->count && !carrier->wanted[carrier->next])
                carrier->next++;
        if (carrier->next >= carrier->count)
                return false;
        channel = carrier->next++;
        *ret = (struct stream_event) {.kind = STREAM_OPENED, .stream = (uint32_t) channel + 1, .port = "", .identity = ""};
        ret->type = forward ? channel % 2 == 0 ? "data" : "error" : names[channel];
        if (forward) {
                (void) snprintf(carrier->port, sizeof carrier->port, "%u", carrier->ports[channel / 2]);
                (void) snprintf(carrier->identity, sizeof carrier->identity, "%zu", channel / 2);
                ret->port = carrier->port;
                ret->identity = carrier->identity;
        }
        return true;
}

static struct nd_error *receive_channels(struct carrier *carrier, char *bytes, size_t length, size_t *ret_used, bool *ret_any,
                                         struct stream_event *ret) {
        struct nd_channel_event event = {};

        *ret_used = 0;
        *ret_any = tell_stream(carrier, ret);
        if (*ret_any)
                return nullptr;
        while (!*ret_any) {
                size_t used;

                nd_try(nd_channels_receive(carrier->channels, bytes + *ret_used, length - *ret_used, &used, &event));
                *ret_used += used;
                carrier->over = carrier->over || event.kind == ND_CHANNEL_CLOSED;
                if (event.kind == ND_CHANNEL_NOTHING || event.kind == ND_CHANNEL_CLOSED)
                        return nullptr;
                *ret_any = event.channel < carrier->count;
        }
        *ret = (struct stream_event) {.kind = event.kind == ND_CHANNEL_FIN ? STREAM_FIN : STREAM_DATA,
                                      .stream = event.channel + 1,
                                      .attachment = carrier->attachments[event.channel],
                                      .type = "",
                                      .port = "",
                                      .identity = "",
                                      .bytes = event.bytes,
                                      .length = event.length};
        return nullptr;
}

struct nd_error *carrier_receive(struct carrier *carrier, char *bytes, size_t length, size_t *ret_used, bool *ret_any,
                                 struct stream_event *ret) {
        *ret = (struct stream_event) {};
        *ret_any = false;
        if (carrier->spdy)
                return receive_spdy(carrier, bytes, length, ret_used, ret_any, ret);
        return receive_channels(carrier, bytes, length, ret_used, ret_any, ret);
}

bool carrier_is_over(const struct carrier *carrier) {
        return carrier->over;
}

/* ---- out ---- */

void carrier_accept(struct carrier *carrier, uint32_t stream) {
        if (carrier->spdy)
                nd_spdy_accept(carrier->spdy, stream);
}

void carrier_refuse(struct carrier *carrier, uint32_t stream) {
        if (carrier->spdy)
                nd_spdy_reset(carrier->spdy, stream, ND_SPDY_REFUSED_STREAM);
}

void carrier_attach(struct carrier *carrier, uint32_t stream, void *attachment) {
        if (carrier->spdy)
                nd_spdy_attach(carrier->spdy, stream, attachment);
        else if (stream > 0 && stream <= carrier->count)
                carrier->attachments[stream - 1] = attachment;
}

size_t carrier_room(const struct carrier *carrier) {
        return carrier->spdy ? nd_spdy_room(carrier->spdy) : nd_channels_room(carrier->channels);
}

void carrier_write(struct carrier *carrier, uint32_t stream, const char *bytes, size_t length) {
        if (carrier->spdy)
                (void) !nd_spdy_write(carrier->spdy, stream, bytes, length);
        else if (stream > 0 && stream <= carrier->count)
                nd_channels_write(carrier->channels, stream - 1, bytes, length);
}

/* WebSocket has no word for it: the end of the connection is the end of all. */
void carrier_end_stream(struct carrier *carrier, uint32_t stream) {
        if (carrier->spdy)
                nd_spdy_finish(carrier->spdy, stream);
}

void carrier_goodbye(struct carrier *carrier) {
        if (carrier->spdy)
                nd_spdy_goaway(carrier->spdy, ND_SPDY_GOODBYE);
        else
                nd_websocket_close(nd_channels_websocket(carrier->channels), ND_WEBSOCKET_NORMAL);
}

size_t carrier_queued(const struct carrier *carrier, const char **ret_bytes) {
        return carrier->spdy ? nd_spdy_output(carrier->spdy, ret_bytes)
                             : nd_websocket_queued(nd_channels_websocket(carrier->channels), ret_bytes);
}

bool carrier_sent(struct carrier *carrier, size_t length) {
        return carrier->spdy ? nd_spdy_sent(carrier->spdy, length)
                             : nd_websocket_sent(nd_channels_websocket(carrier->channels), length);
}
