/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - one client of the streaming server: request head, upgrade, SPDY, and who uses the streams */
#pragma once

#include <systemd/sd-event.h>

#include "cri/stream/token.h"

struct connection;
struct cri_config;
struct pins;
struct pods;

/* What sessions work with. */
struct stream_parts {
        sd_event *loop;
        const struct cri_config *config;
        const struct pods *pods;
        const struct pins *pins;
};

enum stream_event_kind {
        STREAM_OPENED, /* answer it with connection_accept() or connection_refuse() */
        STREAM_DATA,
        STREAM_FIN,   /* the client will send no more on this stream; ours may go on */
        STREAM_RESET, /* the stream is gone */
};

/* What a client does. What the pointers point to lives as long as the call. */
struct stream_event {
        enum stream_event_kind kind;
        uint32_t stream;
        void *attachment;                   /* what connection_attach() gave the stream */
        const char *type, *port, *identity; /* of OPENED: what the client calls it; "" where it says nothing */
        const char *bytes;
        size_t length;
};

/* What is done over a connection. A session belongs to its connection until either ends it: the session by connection_finish(), the client by going. */
struct session_type {
        const char *path;                     /* "/exec/" */
        const char *const *protocols;         /* over SPDY; ends with nullptr */
        const char *const *channel_protocols; /* over WebSocket; likewise */
        size_t streams;                       /* open at once */
        /* Takes the request. The protocol is one of the lists' strings, or "". */
        void *(*begin)(struct connection *connection, struct stream_request *request, const char *protocol);
        /* False: too busy for more, until connection_resume(). A session that ends here says true. */
        bool (*event)(const struct stream_event *event, void *session);
        void (*room)(void *session); /* data that found no room can be written again */
        void (*gone)(void *session); /* the client is: frees the session */
};

/* The request that a path's token stands for, and what it is done by; nullptr when there is none. */
typedef struct stream_request *(*connection_redeem)(const char *path, const struct session_type **ret_type, void *userdata);
typedef void (*connection_ended)(struct connection *connection, void *userdata); /* it is to be freed now */

struct connection_owner {
        struct stream_parts parts;
        connection_redeem redeem;
        connection_ended ended;
        void *userdata;
};

/* Takes the descriptor. The owner must outlive it. */
[[nodiscard]] struct nd_error *connection_new(const struct connection_owner *owner, int fd, struct connection **ret);
void connection_free(struct connection *connection); /* with its session */

/* Has not shown a token yet. */
[[nodiscard]] bool connection_is_new(const struct connection *connection);

/* The request was for this container or sandbox. */
[[nodiscard]] bool connection_is_for(const struct connection *connection, const char *id);

/* ---- for sessions ---- */

const struct stream_parts *connection_parts(const struct connection *connection);

/* Streams. One that is gone may still be spoken to: nothing happens. */
void connection_accept(struct connection *connection, uint32_t stream);
void connection_refuse(struct connection *connection, uint32_t stream);
void connection_attach(struct connection *connection, uint32_t stream, void *attachment);
size_t connection_room(const struct connection *connection); /* bytes that can be written now, on all streams together */
void connection_write(struct connection *connection, uint32_t stream, const char *bytes,
                      size_t length);                                       /* no more than that */
void connection_end_stream(struct connection *connection, uint32_t stream); /* we write no more; the client may go on */

void connection_flush(struct connection *connection);  /* after anything was said to the streams */
void connection_resume(struct connection *connection); /* the session is no longer busy */

/* The session has ended, and frees itself: what is queued goes out, then the connection closes. */
void connection_finish(struct connection *connection);
