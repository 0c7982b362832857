/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-session.h - the server's side of one gRPC connection, without any I/O
 *
 * Bytes from the peer go in, bytes for the peer come out, calls appear in between. The owner moves the bytes and keeps the time;
 * so a fuzzer can be the peer. See grpc-server.h for the one with sockets. */
#pragma once

#include "net/grpc.h"

struct nd_grpc_session;
struct nd_grpc_call;

enum {
        ND_GRPC_STREAMS = 2048,     /* calls at once on one connection */
        ND_GRPC_INPUT = 64 << 20,   /* bytes of unfinished requests that one connection may hold */
        ND_GRPC_OUTPUT = 64 << 20,  /* bytes of answers that wait for one connection's peer */
        ND_GRPC_HEADERS = 64 << 10, /* bytes of headers of one call */
        ND_GRPC_WINDOW = 1 << 20,   /* bytes the peer may send ahead, per call and per connection */
};

/* What the owner of a session is told. All run inside of nd_grpc_session_receive() or of a function of a call. */
struct nd_grpc_events {
        /* A whole request is there. From now on the call belongs to whoever handles it, until nd_grpc_call_finish(). */
        void (*request)(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata);
        /* There is something to send: the owner calls nd_grpc_session_output() soon, but not from here, since that may end calls whose handler
         * is running. Not called during _receive(). */
        void (*output)(void *userdata);
};

[[nodiscard]] struct nd_error *nd_grpc_session_new(const struct nd_grpc_events *events, void *userdata,
                                                   struct nd_grpc_session **ret);
void nd_grpc_session_free(struct nd_grpc_session *session); /* calls that are being handled live on, cancelled */

/* An error means that the peer does not speak HTTP/2 or broke a bound: close the connection after sending what is left. */
[[nodiscard]] struct nd_error *nd_grpc_session_receive(struct nd_grpc_session *session, const char *bytes, size_t length);

/* The next bytes to send, valid until the next call of any function here; 0 when there is nothing now. */
size_t nd_grpc_session_output(struct nd_grpc_session *session, const char **ret_bytes);

/* True when both sides have said all: nothing will ever be sent or expected again. */
bool nd_grpc_session_over(const struct nd_grpc_session *session);

/* Tells the peer to take new calls elsewhere; calls under way go on. */
void nd_grpc_session_shutdown(struct nd_grpc_session *session);

/* ---- calls ---- */

const char *nd_grpc_call_path(const struct nd_grpc_call *call);
uint64_t nd_grpc_call_timeout_us(const struct nd_grpc_call *call); /* from when the headers came; 0 = none */

/* Told once, when the peer cancels, its connection ends, or nd_grpc_call_expire() runs, before the call is finished. The handler must
 * still finish the call, now or later; what it sends is thrown away. */
void nd_grpc_call_on_cancel(struct nd_grpc_call *call, void (*function)(void *userdata), void *userdata);
bool nd_grpc_call_cancelled(const struct nd_grpc_call *call);

enum nd_error_code nd_grpc_call_status(
        const struct nd_grpc_call *call); /* how it ended; ND_CANCELLED when the peer left before */
const char *nd_grpc_call_status_text(const struct nd_grpc_call *call); /* the error's text, "" when it ended well */

/* One message of the answer: one for a unary call, any number for a stream. Too large a message, or a peer that does not read while more
 * than ND_GRPC_OUTPUT waits for it, ends the call with RESOURCE_EXHAUSTED. */
void nd_grpc_call_send(struct nd_grpc_call *call, const char *bytes, size_t length);
size_t nd_grpc_call_queued(const struct nd_grpc_call *call); /* bytes that the peer has not taken yet */

/* Sends the headers of an answer before its first message, so that the peer of a stream knows that it is being served. */
void nd_grpc_call_begin(struct nd_grpc_call *call);

/* Told whenever all that was sent so far has been taken. The function may send more and may finish the call. */
void nd_grpc_call_on_drained(struct nd_grpc_call *call, void (*function)(void *userdata), void *userdata);

/* Ends the call. Consumes the error; nullptr = OK. The call must not be touched afterwards. */
void nd_grpc_call_finish(struct nd_grpc_call *call, struct nd_error *error);

/* The deadline has passed: the peer is told, the handler too. */
void nd_grpc_call_expire(struct nd_grpc_call *call);

/* A pointer of the session's owner, for its timer or its book of calls; the function runs when the call is gone. */
void nd_grpc_call_attach(struct nd_grpc_call *call, void *attachment, void (*detach)(void *attachment));
