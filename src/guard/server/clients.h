/* SPDX-License-Identifier: Apache-2.0 */
/* clients.h - who is connected, by address, and how much of the server one of them may take
 *
 * An address is an IPv4 address or a /64 of IPv6. It is authenticated while one of its connections
 * has an accepted client certificate, and for an hour after. Where no certificates are required
 * every address counts as authenticated. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

enum {
        GUARD_BODIES = 256 << 20, /* bytes of requests that are being received, of all clients */
};

struct guard_address { /* what one address takes at the moment */
        char *text;
        uint64_t number; /* unlike any other's, never 0 */
        uint64_t authenticated_us;
        unsigned connections;
        size_t body_bytes;
        uint64_t second_us; /* in which `opened` counts */
        unsigned opened;
        bool authenticated;
};

struct guard_clients;

struct guard_clients *guard_clients_new(unsigned connections, bool asks_for_certificates);
void guard_clients_free(struct guard_clients *clients); /* all connections were closed */

/* Whether one more connection may be opened. */
bool guard_clients_may_connect(struct guard_clients *clients, const struct sockaddr *address, socklen_t length,
                               uint64_t now_us);

/* One more connection, which may have come to be after guard_clients_may_connect() said yes to
 * others. The address stays until the connection is closed. */
struct guard_address *guard_clients_open(struct guard_clients *clients, const struct sockaddr *address);
void guard_clients_close(struct guard_clients *clients, struct guard_address *address, bool authenticated, uint64_t now_us);
void guard_clients_authenticated(struct guard_clients *clients, struct guard_address *address,
                                 uint64_t now_us); /* a connection, once */

/* Room for more bytes of a request's body; false: there is none. */
bool guard_clients_take_bytes(struct guard_clients *clients, struct guard_address *address, size_t bytes);
void guard_clients_return_bytes(struct guard_clients *clients, struct guard_address *address, size_t bytes);

/* Forgets addresses without connections that are not authenticated any more. */
void guard_clients_sweep(struct guard_clients *clients, uint64_t now_us);
