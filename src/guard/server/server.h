/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - HTTPS in the event loop
 *
 * A request is handed over whole. It is answered at once or later, from the same thread; until then
 * its connection waits. */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"
#include "guard/server/client-auth.h"

struct guard_server;
struct guard_exchange;

struct guard_server_files {      /* their contents, PEM */
        const char *certificate; /* the chain */
        const char *key;
        const char *client_ca; /* of clients; nullptr: they need no certificate, and it stays so */
};

struct guard_server_settings {
        const char *address; /* "0.0.0.0", "::" */
        uint16_t port;
        struct guard_server_files files;
        struct guard_client_names reviewers, readers; /* names of clients' certificates: who may ask all, and for metrics */
        enum guard_right (*needs)(const char *method, const char *path); /* a right of the client; nullptr: always one */
        size_t body_ceiling;
        unsigned connections; /* most at a time */
        void (*handle)(struct guard_exchange *exchange, void *userdata);
        void (*answered)(const char *path, uint64_t microseconds,
                         void *userdata); /* since all of it was there; may be nullptr */
        void *userdata;
};

[[nodiscard]] struct nd_error *guard_server_new(sd_event *loop, const struct guard_server_settings *settings,
                                                struct guard_server **ret);
void guard_server_free(struct guard_server *server); /* requests that were not answered are told to come again, and are gone */
uint16_t guard_server_port(const struct guard_server *server);

/* Another certificate for clients that connect from now on, and another authority for all. Where
 * certificate and key do not belong together the former ones stay. */
[[nodiscard]] struct nd_error *guard_server_renew(struct guard_server *server, const struct guard_server_files *files);

uint64_t guard_server_refused(const struct guard_server *server); /* requests, for want of a client certificate */

const char *guard_exchange_method(const struct guard_exchange *exchange);
const char *guard_exchange_path(const struct guard_exchange *exchange);
uint64_t guard_exchange_client(const struct guard_exchange *exchange); /* a number for the client's address, never 0 */
const char *guard_exchange_body(const struct guard_exchange *exchange, size_t *ret_length); /* until the answer */

/* The text is copied. */
void guard_exchange_respond(struct guard_exchange *exchange, unsigned status, const char *content_type, const char *text,
                            size_t length);
