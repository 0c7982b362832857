/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - one client of the streaming server: request head, upgrade, SPDY, and who uses the streams */
#pragma once

#include <systemd/sd-event.h>

#include "cri/stream/token.h"
#include "net/spdy.h"

struct connection;
struct daemon;

/* What is done over a connection. A session belongs to its connection until either ends it: the session by connection_finish(), the client by going. */
struct session_type {
        const char *path;             /* "/exec/" */
        const char *const *protocols; /* ends with nullptr */
        size_t streams;               /* open at once */
        /* Takes the request. The protocol is one of the list's strings. */
        void *(*begin)(struct connection *connection, struct stream_request *request, const char *protocol);
        /* False: too busy for more, until connection_resume(). A session that ends here says true. */
        bool (*event)(const struct nd_spdy_event *event, void *session);
        void (*room)(void *session); /* data that found no room can be written again */
        void (*gone)(void *session); /* the client is: frees the session */
};

/* The request that a path's token stands for, and what it is done by; nullptr when there is none. */
typedef struct stream_request *(*connection_redeem)(const char *path, const struct session_type **ret_type, void *userdata);
typedef void (*connection_ended)(struct connection *connection, void *userdata); /* it is to be freed now */

struct connection_owner {
        struct daemon *daemon;
        connection_redeem redeem;
        connection_ended ended;
        void *userdata;
};

/* Takes the descriptor. The owner must outlive it. */
[[nodiscard]] struct nd_error *connection_new(const struct connection_owner *owner, int fd, struct connection **ret);
void connection_free(struct connection *connection); /* with its session */

/* Has not shown a token yet. */
[[nodiscard]] bool connection_is_new(const struct connection *connection);

/* ---- for sessions ---- */

struct daemon *connection_daemon(const struct connection *connection);
struct nd_spdy *connection_spdy(const struct connection *connection);
void connection_flush(struct connection *connection);  /* after anything was said to the streams */
void connection_resume(struct connection *connection); /* the session is no longer busy */

/* The session has ended, and frees itself: what is queued goes out, then the connection closes. */
void connection_finish(struct connection *connection);
