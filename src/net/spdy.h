/* SPDX-License-Identifier: Apache-2.0 */
/* spdy.h - the server's side of one SPDY/3.1 connection, without any I/O
 *
 * Bytes from the peer go in and give events; calls on streams give bytes for the peer. No
 * callbacks: the owner pulls.
 *
 *      for (size_t done = 0;;) {
 *              nd_try(nd_spdy_receive(spdy, bytes + done, length - done, &used, &event));
 *              done += used;
 *              if (event.kind == ND_SPDY_NOTHING)
 *                      break;                     (all bytes consumed: read more)
 *              handle(&event);                    (busy? Keep the other bytes, go on here later)
 *      }
 *
 * Kubernetes' SPDY clients have no flow control, so both directions are bounded here and by the
 * owner: input by not reading, output by nd_spdy_write() accepting no more than there is room
 * for. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
        ND_SPDY_STREAMS = 8, /* default number of open streams: exec and attach need five */
        /* Maximum size of a control frame, and so of a compressed header block. */
        ND_SPDY_CONTROL = 16 << 10,
        ND_SPDY_HEADERS = 64 << 10, /* maximum size of an inflated header block */
        ND_SPDY_FIELDS = 64,        /* maximum headers in it */
        ND_SPDY_OUTPUT = 256 << 10, /* default limit of queued data */
        /* Additional room for answers; a peer that exceeds it is disconnected. */
        ND_SPDY_ANSWERS = 64 << 10,
        ND_SPDY_DATA_FRAME = 32 << 10 /* maximum data in one frame that we send */
};

enum nd_spdy_status { /* reasons of RST_STREAM; SPDY/3.1 section 2.6.3 */
                      ND_SPDY_PROTOCOL_ERROR = 1,
                      ND_SPDY_INVALID_STREAM = 2,
                      ND_SPDY_REFUSED_STREAM = 3,
                      ND_SPDY_UNSUPPORTED_VERSION = 4,
                      ND_SPDY_CANCEL = 5,
                      ND_SPDY_INTERNAL_ERROR = 6,
                      ND_SPDY_STREAM_IN_USE = 8,
                      ND_SPDY_STREAM_CLOSED = 9,
};

enum nd_spdy_farewell { /* reasons of GOAWAY */
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
        ND_SPDY_NOTHING, /* all bytes consumed, no event */
        /* A stream, with headers: answer it with nd_spdy_accept() or nd_spdy_reset(). */
        ND_SPDY_OPENED,
        ND_SPDY_DATA,   /* a piece of a stream's data; points into the input */
        ND_SPDY_FIN,    /* the peer sends no more on this stream; our side may */
        ND_SPDY_RESET,  /* the stream no longer exists */
        ND_SPDY_PING,   /* already answered; reported as a sign of life */
        ND_SPDY_GOAWAY, /* the peer opens no more streams */
};

/* The pointers are valid until the next nd_spdy_receive(). */
struct nd_spdy_event {
        enum nd_spdy_kind kind;
        uint32_t stream;
        void *attachment; /* set by nd_spdy_attach(), nullptr before */
        const struct nd_spdy_header *headers;
        size_t header_count;
        const char *bytes;
        size_t length;
        uint32_t status; /* of RESET and GOAWAY */
};

/* The header of that name, in lower case, or nullptr. */
const char *nd_spdy_event_header(const struct nd_spdy_event *event, const char *name);

struct nd_spdy_settings {
        /* Maximum open streams; 0 = ND_SPDY_STREAMS. More are refused without an event. */
        size_t streams;
        size_t output; /* 0 = ND_SPDY_OUTPUT */
};

struct nd_spdy;

[[nodiscard]] struct nd_error *nd_spdy_new(const struct nd_spdy_settings *settings, struct nd_spdy **ret);
void nd_spdy_free(struct nd_spdy *spdy);
static inline void nd_spdy_done(struct nd_spdy **spdy) {
        nd_spdy_free(*spdy);
        *spdy = nullptr;
}

/* Consumes bytes up to the next event. An error means that the peer does not speak SPDY/3 or
 * exceeded a limit: a GOAWAY is queued; send the queue, then close. */
[[nodiscard]] struct nd_error *nd_spdy_receive(struct nd_spdy *spdy, const char *bytes, size_t length, size_t *ret_used,
                                               struct nd_spdy_event *ret);

/* ---- streams ----
 *
 * Calls on a stream that no longer exists (both sides have ended it, or either has reset it) have
 * no effect. */

void nd_spdy_attach(struct nd_spdy *spdy, uint32_t stream, void *attachment);

/* Answers an OPENED. The peer discards data that arrives before the reply, so writing to a stream
 * and finishing it send the reply, too, if needed. */
void nd_spdy_accept(struct nd_spdy *spdy, uint32_t stream);

/* Queues data, as much as there is room for; returns how much. Less than the length: go on when
 * nd_spdy_sent() returns true. For a stream that no longer exists, or that we have ended, all data
 * counts as taken and is discarded. */
[[nodiscard]] size_t nd_spdy_write(struct nd_spdy *spdy, uint32_t stream, const char *bytes, size_t length);

/* How much data nd_spdy_write() would take now, for a caller that reads only as much as it can pass
 * on. */
size_t nd_spdy_room(const struct nd_spdy *spdy);

void nd_spdy_finish(struct nd_spdy *spdy, uint32_t stream); /* ends our side; the peer may go on */
void nd_spdy_reset(struct nd_spdy *spdy, uint32_t stream, enum nd_spdy_status status);
bool nd_spdy_open(const struct nd_spdy *spdy, uint32_t stream); /* exists */
size_t nd_spdy_streams(const struct nd_spdy *spdy);             /* number of open streams */

/* ---- the connection ---- */

/* New streams are ignored from now on. */
void nd_spdy_goaway(struct nd_spdy *spdy, enum nd_spdy_farewell reason);
/* The answer comes as ND_SPDY_PING. */
void nd_spdy_ping(struct nd_spdy *spdy);

/* The next bytes to send; valid until the next call of any other function here; 0 if there are
 * none. */
size_t nd_spdy_output(const struct nd_spdy *spdy, const char **ret_bytes);

/* Removes sent bytes from the queue. Returns true if this freed half of the room: a caller that
 * found too little may write again. */
[[nodiscard]] bool nd_spdy_sent(struct nd_spdy *spdy, size_t length);
size_t nd_spdy_queued(const struct nd_spdy *spdy); /* bytes not sent yet */
