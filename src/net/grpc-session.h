/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-session.h - the server's side of one gRPC connection, without any I/O
 *
 * Bytes from the peer go in, bytes for the peer come out, and calls are passed to handlers. The
 * owner moves the bytes and runs the timers; so a fuzzer can act as the peer. grpc-server.h adds
 * the sockets. */
#pragma once

#include "net/grpc.h"

struct nd_grpc_session;
struct nd_grpc_call;

enum {
        ND_GRPC_STREAMS = 2048,     /* concurrent calls on one connection */
        ND_GRPC_INPUT = 64 << 20,   /* maximum bytes of incomplete requests on one connection */
        ND_GRPC_OUTPUT = 64 << 20,  /* maximum bytes of queued responses on one connection */
        ND_GRPC_HEADERS = 64 << 10, /* maximum bytes of headers of one call */
        ND_GRPC_WINDOW = 1 << 20,   /* flow-control window, per call and per connection */
};

/* Callbacks to the owner of a session. All run inside nd_grpc_session_receive() or a function of a
 * call. */
struct nd_grpc_events {
        /* A request is complete. From now on the handler owns the call, until
         * nd_grpc_call_finish(). */
        void (*request)(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata);
        /* Output is queued: the owner calls nd_grpc_session_output() soon, but not from here, since
         * that may end calls whose handler is running. Not called during
         * nd_grpc_session_receive(). */
        void (*output)(void *userdata);
};

[[nodiscard]] struct nd_error *nd_grpc_session_new(const struct nd_grpc_events *events, void *userdata,
                                                   struct nd_grpc_session **ret);
/* Calls with a handler live on, cancelled. */
void nd_grpc_session_free(struct nd_grpc_session *session);

/* An error means that the peer does not speak HTTP/2 or exceeded a limit: close the connection
 * after sending the queued bytes. */
[[nodiscard]] struct nd_error *nd_grpc_session_receive(struct nd_grpc_session *session, const char *bytes, size_t length);

/* The next bytes to send, valid until the next call of any function here; 0 if there are none
 * now. */
size_t nd_grpc_session_output(struct nd_grpc_session *session, const char **ret_bytes);

/* True if both sides are finished: nothing more will be sent or received. */
bool nd_grpc_session_over(const struct nd_grpc_session *session);

/* ---- calls ---- */

const char *nd_grpc_call_path(const struct nd_grpc_call *call);
/* Counted from the arrival of the headers; 0 = none. */
uint64_t nd_grpc_call_timeout_us(const struct nd_grpc_call *call);

/* Called once if the peer cancels, its connection ends, or nd_grpc_call_expire() runs before the
 * call is finished. The handler must still finish the call, now or later; what it sends is
 * discarded. */
void nd_grpc_call_on_cancel(struct nd_grpc_call *call, void (*function)(void *userdata), void *userdata);

enum nd_error_code nd_grpc_call_status(
        const struct nd_grpc_call *call); /* final status; ND_CANCELLED if the peer left before */
/* The error text, "" after success. */
const char *nd_grpc_call_status_text(const struct nd_grpc_call *call);

/* The object that the call is about, set by its handler for the server's observer; "" = not set. */
void nd_grpc_call_set_subject(struct nd_grpc_call *call, const char *subject);
const char *nd_grpc_call_subject(const struct nd_grpc_call *call);

/* Sends one message: one for a unary call, any number for a stream. Too large a message, or a peer
 * that does not read while more than ND_GRPC_OUTPUT is queued, ends the call with
 * RESOURCE_EXHAUSTED. */
void nd_grpc_call_send(struct nd_grpc_call *call, const char *bytes, size_t length);
size_t nd_grpc_call_queued(const struct nd_grpc_call *call); /* bytes not sent yet */

/* Sends the response headers before the first message, so that the peer of a stream learns that the
 * call was accepted. */
void nd_grpc_call_begin(struct nd_grpc_call *call);

/* Called each time the queue has drained. The function may send more and may finish the call. */
void nd_grpc_call_on_drained(struct nd_grpc_call *call, void (*function)(void *userdata), void *userdata);

/* Ends the call. Consumes the error; nullptr = OK. The call must not be touched afterwards. */
void nd_grpc_call_finish(struct nd_grpc_call *call, struct nd_error *error);

/* The deadline has passed: answers the peer and notifies the handler. */
void nd_grpc_call_expire(struct nd_grpc_call *call);

/* A pointer for the session's owner, for example to its timer; the function runs when the call is
 * freed. */
void nd_grpc_call_attach(struct nd_grpc_call *call, void *attachment, void (*detach)(void *attachment));
