/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - one client of the streaming server: request head, upgrade, transport, session */
#pragma once

#include <systemd/sd-event.h>

#include "cri/stream/token.h"

struct cri_stream_connection;
struct cri_config;
struct cri_pins;
struct cri_pod_table;

/* What sessions need of the daemon. */
struct cri_stream_parts {
        sd_event *loop;
        const struct cri_config *config;
        const struct cri_pod_table *pods;
        const struct cri_pins *pins;
};

enum cri_stream_event_kind {
        /* reply with cri_stream_connection_accept() or cri_stream_connection_refuse() */
        STREAM_OPENED,
        STREAM_DATA,
        STREAM_FIN,   /* the client sends no more on this stream; our direction stays open */
        STREAM_RESET, /* the stream is closed */
};

/* An event on a stream. The pointers are valid during the call. */
struct cri_stream_event {
        enum cri_stream_event_kind kind;
        uint32_t stream;
        void *attachment;                   /* set by cri_stream_connection_attach() */
        const char *type, *port, *identity; /* of OPENED: the stream's headers; "" if absent */
        const char *bytes;
        size_t length;
};

/* A kind of session. The connection owns a session until either ends it: the session by
 * cri_stream_connection_finish(), the client by disconnecting. */
struct cri_stream_session_type {
        const char *path;                     /* "/exec/" */
        const char *const *protocols;         /* over SPDY; ends with nullptr */
        const char *const *channel_protocols; /* over WebSocket; ends with nullptr */
        size_t streams;                       /* maximum open at once */
        /* Takes the request. The protocol is a string of the lists, or "". */
        void *(*begin)(struct cri_stream_connection *connection, struct cri_stream_request *request, const char *protocol);
        /* False: busy until cri_stream_connection_resume(). Returns true if the session has
         * ended. */
        bool (*event)(const struct cri_stream_event *event, void *session);
        void (*room)(void *session); /* there is room for output again */
        void (*gone)(void *session); /* the client has disconnected: frees the session */
};

/* Returns the request that the token in a path stands for, and its session type; nullptr if there
 * is none. */
typedef struct cri_stream_request *(*cri_stream_connection_redeem)(const char *path,
                                                                   const struct cri_stream_session_type **ret_type,
                                                                   void *userdata);
typedef void (*cri_stream_connection_ended)(struct cri_stream_connection *connection,
                                            void *userdata); /* it must be freed now */

struct cri_stream_connection_owner {
        struct cri_stream_parts parts;
        cri_stream_connection_redeem redeem;
        cri_stream_connection_ended ended;
        void *userdata;
};

/* Takes the descriptor. The owner must outlive the connection. */
[[nodiscard]] struct nd_error *cri_stream_connection_new(const struct cri_stream_connection_owner *owner, int fd,
                                                         struct cri_stream_connection **ret);
void cri_stream_connection_free(struct cri_stream_connection *connection); /* with its session */

/* True until the client has presented a token. */
[[nodiscard]] bool cri_stream_connection_is_new(const struct cri_stream_connection *connection);

/* The request was for this container or sandbox. */
[[nodiscard]] bool cri_stream_connection_is_for(const struct cri_stream_connection *connection, const char *id);

/* ---- for sessions ---- */

const struct cri_stream_parts *cri_stream_connection_parts(const struct cri_stream_connection *connection);

/* Streams. Calls on a closed stream are ignored. */
void cri_stream_connection_accept(struct cri_stream_connection *connection, uint32_t stream);
void cri_stream_connection_refuse(struct cri_stream_connection *connection, uint32_t stream);
void cri_stream_connection_attach(struct cri_stream_connection *connection, uint32_t stream, void *attachment);
/* bytes that can be written now, on all streams together */
size_t cri_stream_connection_room(const struct cri_stream_connection *connection);
void cri_stream_connection_write(struct cri_stream_connection *connection, uint32_t stream, const char *bytes,
                                 size_t length); /* at most cri_stream_connection_room() */
/* ends our direction; the client may continue */
void cri_stream_connection_end_stream(struct cri_stream_connection *connection, uint32_t stream);

/* call after any of the above */
void cri_stream_connection_flush(struct cri_stream_connection *connection);
/* the session is no longer busy */
void cri_stream_connection_resume(struct cri_stream_connection *connection);

/* The session has ended and frees itself: queued output is sent, then the connection is closed. */
void cri_stream_connection_finish(struct cri_stream_connection *connection);
