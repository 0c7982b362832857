/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - HTTPS in the event loop
 *
 * A request is handed over whole. It is answered at once or later, from the same thread; until then its connection waits. */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct guard_server;
struct guard_exchange;

struct guard_server_settings {
        const char *address; /* "0.0.0.0", "::" */
        uint16_t port;
        const char *certificate; /* PEM, the chain */
        const char *key;
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

/* Another certificate for whoever connects from now on. Where the two do not belong together the former ones stay. */
[[nodiscard]] struct nd_error *guard_server_renew(struct guard_server *server, const char *certificate, const char *key);

const char *guard_exchange_method(const struct guard_exchange *exchange);
const char *guard_exchange_path(const struct guard_exchange *exchange);
const char *guard_exchange_body(const struct guard_exchange *exchange, size_t *ret_length); /* until the answer */

/* The text is copied. */
void guard_exchange_answer(struct guard_exchange *exchange, unsigned status, const char *content_type, const char *text,
                           size_t length);
