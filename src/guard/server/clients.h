/* SPDX-License-Identifier: Apache-2.0 */
/* clients.h - connected clients by address, and limits for each
 *
 * An address is an IPv4 address or a /64 of IPv6. It is authenticated while one of its connections
 * has an accepted client certificate, and for an hour after. If no certificates are required, every
 * address counts as authenticated. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

enum {
        GUARD_BODIES = 256 << 20, /* bytes of request bodies being received, of all clients */
};

/* Current use by one address. */
struct guard_address {
        char *text;
        uint64_t number; /* unique, never 0 */
        uint64_t authenticated_us;
        unsigned connections;
        size_t body_bytes;
        uint64_t second_us; /* the second that `opened` counts */
        unsigned opened;
        bool authenticated;
};

struct guard_clients;

struct guard_clients *guard_clients_new(unsigned connections, bool asks_for_certificates);
void guard_clients_free(struct guard_clients *clients); /* after all connections were closed */

/* Whether one more connection may be opened. */
bool guard_clients_may_connect(struct guard_clients *clients, const struct sockaddr *address, socklen_t length,
                               uint64_t now_us);

/* Adds a connection. Others may have been opened since guard_clients_may_connect() allowed it. The
 * address stays valid until the connection is closed. */
struct guard_address *guard_clients_open(struct guard_clients *clients, const struct sockaddr *address);
void guard_clients_close(struct guard_clients *clients, struct guard_address *address, bool authenticated, uint64_t now_us);
void guard_clients_authenticated(struct guard_clients *clients, struct guard_address *address,
                                 uint64_t now_us); /* a connection, once */

/* Reserves bytes for a request's body. Returns false if a limit is reached. */
bool guard_clients_take_bytes(struct guard_clients *clients, struct guard_address *address, size_t bytes);
void guard_clients_return_bytes(struct guard_clients *clients, struct guard_address *address, size_t bytes);

/* Drops addresses that have no connections and are no longer authenticated. */
void guard_clients_sweep(struct guard_clients *clients, uint64_t now_us);
