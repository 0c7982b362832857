/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - one client of the streaming server: request head, upgrade, SPDY, and who uses the streams */
#pragma once

#include <systemd/sd-event.h>

#include "cri/stream/token.h"

struct cri_stream_connection;
struct cri_config;
struct cri_pins;
struct cri_pod_table;

/* What sessions work with. */
struct cri_stream_parts {
        sd_event *loop;
        const struct cri_config *config;
        const struct cri_pod_table *pods;
        const struct cri_pins *pins;
};

enum cri_stream_event_kind {
        STREAM_OPENED, /* answer it with cri_stream_connection_accept() or cri_stream_connection_refuse() */
        STREAM_DATA,
        STREAM_FIN,   /* the client will send no more on this stream; ours may go on */
        STREAM_RESET, /* the stream is gone */
};

/* What a client does. What the pointers point to lives as long as the call. */
struct cri_stream_event {
        enum cri_stream_event_kind kind;
        uint32_t stream;
        void *attachment;                   /* what cri_stream_connection_attach() gave the stream */
        const char *type, *port, *identity; /* of OPENED: what the client calls it; "" where it says nothing */
        const char *bytes;
        size_t length;
};

/* What is done over a connection. A session belongs to its connection until either ends it: the session by cri_stream_connection_finish(), the client by going. */
struct cri_stream_session_type {
        const char *path;                     /* "/exec/" */
        const char *const *protocols;         /* over SPDY; ends with nullptr */
        const char *const *channel_protocols; /* over WebSocket; likewise */
        size_t streams;                       /* open at once */
        /* Takes the request. The protocol is one of the lists' strings, or "". */
        void *(*begin)(struct cri_stream_connection *connection, struct cri_stream_request *request, const char *protocol);
        /* False: too busy for more, until cri_stream_connection_resume(). A session that ends here says true. */
        bool (*event)(const struct cri_stream_event *event, void *session);
        void (*room)(void *session); /* data that found no room can be written again */
        void (*gone)(void *session); /* the client is: frees the session */
};

/* The request that a path's token stands for, and what it is done by; nullptr when there is none. */
typedef struct cri_stream_request *(*cri_stream_connection_redeem)(const char *path,
                                                                   const struct cri_stream_session_type **ret_type,
                                                                   void *userdata);
typedef void (*cri_stream_connection_ended)(struct cri_stream_connection *connection,
                                            void *userdata); /* it is to be freed now */

struct cri_stream_connection_owner {
        struct cri_stream_parts parts;
        cri_stream_connection_redeem redeem;
        cri_stream_connection_ended ended;
        void *userdata;
};

/* Takes the descriptor. The owner must outlive it. */
[[nodiscard]] struct nd_error *cri_stream_connection_new(const struct cri_stream_connection_owner *owner, int fd,
                                                         struct cri_stream_connection **ret);
void cri_stream_connection_free(struct cri_stream_connection *connection); /* with its session */

/* Has not shown a token yet. */
[[nodiscard]] bool cri_stream_connection_is_new(const struct cri_stream_connection *connection);

/* The request was for this container or sandbox. */
[[nodiscard]] bool cri_stream_connection_is_for(const struct cri_stream_connection *connection, const char *id);

/* ---- for sessions ---- */

const struct cri_stream_parts *cri_stream_connection_parts(const struct cri_stream_connection *connection);

/* Streams. One that is gone may still be spoken to: nothing happens. */
void cri_stream_connection_accept(struct cri_stream_connection *connection, uint32_t stream);
void cri_stream_connection_refuse(struct cri_stream_connection *connection, uint32_t stream);
void cri_stream_connection_attach(struct cri_stream_connection *connection, uint32_t stream, void *attachment);
size_t cri_stream_connection_room(
        const struct cri_stream_connection *connection); /* bytes that can be written now, on all streams together */
void cri_stream_connection_write(struct cri_stream_connection *connection, uint32_t stream, const char *bytes,
                                 size_t length); /* no more than that */
void cri_stream_connection_end_stream(struct cri_stream_connection *connection,
                                      uint32_t stream); /* we write no more; the client may go on */

void cri_stream_connection_flush(struct cri_stream_connection *connection);  /* after anything was said to the streams */
void cri_stream_connection_resume(struct cri_stream_connection *connection); /* the session is no longer busy */

/* The session has ended, and frees itself: what is queued goes out, then the connection closes. */
void cri_stream_connection_finish(struct cri_stream_connection *connection);
