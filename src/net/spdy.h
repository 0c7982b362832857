/* SPDX-License-Identifier: Apache-2.0 */
/* spdy.h - the server's side of one SPDY/3.1 connection, without any I/O
 *
 * Bytes from the peer go in and give events; what the owner says to streams gives bytes for the peer. No callbacks: the owner pulls.
 *
 *      for (size_t done = 0;;) {
 *              nd_try(nd_spdy_receive(spdy, bytes + done, length - done, &used, &event));
 *              done += used;
 *              if (event.kind == ND_SPDY_NOTHING)
 *                      break;                     (all bytes are taken: read more)
 *              handle(&event);                    (too busy for its data? Keep the rest of the bytes, stop reading, go on here later)
 *      }
 *
 * SPDY's peers in Kubernetes have no flow control, so both directions are bounded here and by the owner: input by not reading, output by
 * nd_spdy_write() taking no more than there is room for. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
        ND_SPDY_STREAMS = 8,        /* open at once, when the settings do not say: exec and attach need five */
        ND_SPDY_CONTROL = 16 << 10, /* most bytes of a control frame, so of a compressed header block */
        ND_SPDY_HEADERS = 64 << 10, /* most bytes of a header block, inflated */
        ND_SPDY_FIELDS = 64,        /* most headers in it */
        ND_SPDY_OUTPUT =
                256 << 10, /* bytes that wait for the peer: where data stops being taken, when the settings do not say */
        ND_SPDY_ANSWERS = 64 << 10,   /* and that much more for answers: a peer that asks on without reading them is cut off */
        ND_SPDY_DATA_FRAME = 32 << 10 /* most data in one frame that we send */
};

enum nd_spdy_status { /* the reasons of RST_STREAM; SPDY/3.1 section 2.6.3 */
                      ND_SPDY_PROTOCOL_ERROR = 1,
                      ND_SPDY_INVALID_STREAM = 2,
                      ND_SPDY_REFUSED_STREAM = 3,
                      ND_SPDY_UNSUPPORTED_VERSION = 4,
                      ND_SPDY_CANCEL = 5,
                      ND_SPDY_INTERNAL_ERROR = 6,
                      ND_SPDY_STREAM_IN_USE = 8,
                      ND_SPDY_STREAM_CLOSED = 9,
};

enum nd_spdy_farewell { /* the reasons of GOAWAY */
                        ND_SPDY_GOODBYE = 0,
                        ND_SPDY_GOODBYE_PROTOCOL = 1,
                        ND_SPDY_GOODBYE_INTERNAL = 2,
};

struct nd_spdy_header {
        const char *name;    /* in lower case, as it must be on the wire */
        const char *value;   /* terminated; several values have a NUL between them */
        size_t value_length; /* of all of them */
};

enum nd_spdy_kind {
        ND_SPDY_NOTHING, /* all bytes are taken, none gave an event */
        ND_SPDY_OPENED,  /* a stream, with headers: answer it with nd_spdy_accept() or nd_spdy_reset() */
        ND_SPDY_DATA,    /* a piece of a stream's data, within the bytes that were given */
        ND_SPDY_FIN,     /* the peer will send no more on this stream; ours may go on */
        ND_SPDY_RESET,   /* the stream is gone */
        ND_SPDY_PING,    /* is answered already; here for whoever tells life from silence */
        ND_SPDY_GOAWAY,  /* the peer opens no more streams */
};

/* What the pointers point to lives until the next nd_spdy_receive(). */
struct nd_spdy_event {
        enum nd_spdy_kind kind;
        uint32_t stream;
        void *attachment; /* what nd_spdy_attach() gave the stream, nullptr before */
        const struct nd_spdy_header *headers;
        size_t header_count;
        const char *bytes;
        size_t length;
        uint32_t status; /* of RESET and GOAWAY */
};

/* The header of that name, in lower case; nullptr when there is none. */
const char *nd_spdy_event_header(const struct nd_spdy_event *event, const char *name);

struct nd_spdy_settings {
        size_t streams; /* open at once; 0 = ND_SPDY_STREAMS. One more is refused, which the owner does not see. */
        size_t output;  /* 0 = ND_SPDY_OUTPUT */
};

struct nd_spdy;

[[nodiscard]] struct nd_error *nd_spdy_new(const struct nd_spdy_settings *settings, struct nd_spdy **ret);
void nd_spdy_free(struct nd_spdy *spdy);
static inline void nd_spdy_done(struct nd_spdy **spdy) {
        nd_spdy_free(*spdy);
        *spdy = nullptr;
}

/* Takes bytes up to the next event. An error means that the peer does not speak SPDY/3 or broke a bound: a GOAWAY is queued; send what is left, close. */
[[nodiscard]] struct nd_error *nd_spdy_receive(struct nd_spdy *spdy, const char *bytes, size_t length, size_t *ret_used,
                                               struct nd_spdy_event *ret);

/* ---- streams ----
 *
 * Calls on a stream that is gone (both sides have ended it, or either has reset it) have no effect. */

void nd_spdy_attach(struct nd_spdy *spdy, uint32_t stream, void *attachment);

/* Answers an OPENED. The peer throws away what comes before this, so writing to a stream and finishing it do it, too, where nobody has. */
void nd_spdy_accept(struct nd_spdy *spdy, uint32_t stream);

/* Queues data, as much as there is room for; returns how much. Less than the length: go on when nd_spdy_sent() says so. For a stream that is gone, or
 * that we have ended, all is "taken" and thrown away. */
[[nodiscard]] size_t nd_spdy_write(struct nd_spdy *spdy, uint32_t stream, const char *bytes, size_t length);

/* How much data nd_spdy_write() would take now, for one who reads only what he can pass on. */
size_t nd_spdy_room(const struct nd_spdy *spdy);

void nd_spdy_finish(struct nd_spdy *spdy, uint32_t stream); /* we send no more; the peer may go on */
void nd_spdy_reset(struct nd_spdy *spdy, uint32_t stream, enum nd_spdy_status status);
bool nd_spdy_open(const struct nd_spdy *spdy, uint32_t stream); /* not gone */
size_t nd_spdy_streams(const struct nd_spdy *spdy);             /* how many are open */

/* ---- the connection ---- */

void nd_spdy_goaway(struct nd_spdy *spdy, enum nd_spdy_farewell reason); /* new streams are passed over from now on */
void nd_spdy_ping(struct nd_spdy *spdy);                                 /* the answer comes as ND_SPDY_PING */

/* The next bytes to send; valid until the next call of any other function here; 0 when there is nothing. */
size_t nd_spdy_output(const struct nd_spdy *spdy, const char **ret_bytes);

/* So many of them are sent. True when half of the room became free by it: who found too little may write again. */
[[nodiscard]] bool nd_spdy_sent(struct nd_spdy *spdy, size_t length);
size_t nd_spdy_queued(const struct nd_spdy *spdy); /* bytes that wait to be sent */
