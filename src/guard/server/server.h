/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - HTTPS in the event loop
 *
 * The handler gets a complete request. It responds at once or later, from the same thread; until
 * then the connection waits. */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"
#include "guard/server/client-auth.h"

struct guard_server;
struct guard_exchange;

/* Their contents, PEM. */
struct guard_server_files {
        const char *certificate; /* the chain */
        const char *key;
        /* CA of clients; nullptr: no certificates are required, now and after
         * guard_server_renew() */
        const char *client_ca;
};

struct guard_server_settings {
        const char *address; /* "0.0.0.0", "::" */
        uint16_t port;
        struct guard_server_files files;
        /* certificate names with all rights, and with the right to metrics only */
        struct guard_client_names reviewers, readers;
        /* right that a request needs; nullptr: every request needs one */
        enum guard_right (*needs)(const char *method, const char *path);
        size_t body_ceiling;
        unsigned connections; /* maximum at a time */
        void (*handle)(struct guard_exchange *exchange, void *userdata);
        void (*answered)(const char *path, uint64_t microseconds,
                         void *userdata); /* time since the request was complete; may be nullptr */
        void *userdata;
};

[[nodiscard]] struct nd_error *guard_server_new(sd_event *loop, const struct guard_server_settings *settings,
                                                struct guard_server **ret);
/* Open requests get a response that can be retried. */
void guard_server_free(struct guard_server *server);

/* Uses another certificate for new connections, and another CA for all. The former certificate and
 * key stay if the new ones do not match. */
[[nodiscard]] struct nd_error *guard_server_renew(struct guard_server *server, const struct guard_server_files *files);

/* From now on every response ends its connection ("Connection: close"), so that clients move to
 * another server by themselves. New connections are still accepted. */
void guard_server_announce_end(struct guard_server *server);

/* Accepts no more connections, and closes those without a request. Call it again until
 * guard_server_connections() is 0: requests in progress are served to their end. */
void guard_server_close_idle(struct guard_server *server);
size_t guard_server_connections(const struct guard_server *server);

/* Returns the number of requests without an accepted client certificate. */
uint64_t guard_server_refused(const struct guard_server *server);

const char *guard_exchange_method(const struct guard_exchange *exchange);
const char *guard_exchange_path(const struct guard_exchange *exchange);
/* Returns a number for the client's address, never 0. */
uint64_t guard_exchange_client(const struct guard_exchange *exchange);
/* Valid until the response. */
const char *guard_exchange_body(const struct guard_exchange *exchange, size_t *ret_length);

/* Copies the text. */
void guard_exchange_respond(struct guard_exchange *exchange, unsigned status, const char *content_type, const char *text,
                            size_t length);
