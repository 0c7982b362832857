/* SPDX-License-Identifier: Apache-2.0 */
/* clients.c - see clients.h
 *
 *      limit of                                     an address          all addresses
 *      connections                                  half of them        all of them
 *      connections without a certificate            an eighth           three quarters
 *      new connections in a second, if not          @OPENED             -
 *      authenticated
 *      bytes of bodies                              half of them        @GUARD_BODIES
 *
 * The last quarter of connections is for authenticated addresses: API servers that were here in the
 * last hour. */
#include "guard/server/clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vector.h"

enum {
        ADDRESSES = 16384, /* known at a time */
        OPENED = 64,
        ADDRESS_TEXT = INET6_ADDRSTRLEN + 4,
};

/* How long an address stays authenticated after its last connection. */
static constexpr uint64_t authenticated_for_us = 3600 * ND_SECOND_US;

struct guard_clients {
        struct nd_map addresses; /* text -> struct guard_address */
        uint64_t numbers;
        unsigned connections, most; /* open, and allowed */
        unsigned unauthenticated;   /* open ones that are not authenticated */
        size_t body_bytes;
        bool asks;
};

struct guard_clients *guard_clients_new(unsigned connections, bool asks_for_certificates) {
        struct guard_clients *clients = nd_new(struct guard_clients);

        clients->most = connections;
        clients->asks = asks_for_certificates;
        return clients;
}

static void address_free(struct guard_address *address) {
        free(address->text);
        free(address);
}

void guard_clients_free(struct guard_clients *clients) {
        const struct nd_map_slot *slot;

        if (!clients)
                return;
        for (size_t at = 0; (slot = nd_map_next(&clients->addresses, &at));)
                address_free(slot->value);
        nd_map_done(&clients->addresses);
        free(clients);
}

/* Formats an IPv4 address, also one mapped into IPv6, or the first 64 bits of an IPv6 address: a
 * client can choose the rest. */
static void text_of(const struct sockaddr *address, char text[static ADDRESS_TEXT]) {
        char network[INET6_ADDRSTRLEN] = "";
        struct sockaddr_in6 v6 = {};
        struct sockaddr_in v4 = {};

        text[0] = '\0';
        if (address && address->sa_family == AF_INET) {
                memcpy(&v4, address, sizeof v4);
                (void) inet_ntop(AF_INET, &v4.sin_addr, text, ADDRESS_TEXT);
        }
        if (!address || address->sa_family != AF_INET6)
                return;
        memcpy(&v6, address, sizeof v6);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
                (void) inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, ADDRESS_TEXT);
                return;
        }
        memset(&v6.sin6_addr.s6_addr[8], 0, 8);
        (void) inet_ntop(AF_INET6, &v6.sin6_addr, network, sizeof network);
        (void) snprintf(text, ADDRESS_TEXT, "%s/64", network);
}

static struct guard_address *known(struct guard_clients *clients, const char *text) {
        struct guard_address *address = nd_map_get(&clients->addresses, text);

        if (address)
                return address;
        address = nd_new(struct guard_address);
        address->text = nd_strdup(text);
        address->number = ++clients->numbers;
        (void) nd_map_put(&clients->addresses, text, address);
        return address;
}

static bool is_authenticated(const struct guard_clients *clients, const struct guard_address *address) {
        return !clients->asks || address->authenticated;
}

static bool opens_too_fast(struct guard_address *address, uint64_t now_us) {
        if (now_us - address->second_us >= ND_SECOND_US) {
                address->second_us = now_us;
                address->opened = 0;
        }
        return ++address->opened > OPENED;
}

bool guard_clients_may_connect(struct guard_clients *clients, const struct sockaddr *sa, [[maybe_unused]] socklen_t length,
                               uint64_t now_us) {
        struct guard_address *address;
        char text[ADDRESS_TEXT];

        text_of(sa, text);
        if (clients->addresses.count >= ADDRESSES && !nd_map_has(&clients->addresses, text))
                return false;
        address = known(clients, text);
        if (clients->connections >= clients->most || address->connections >= clients->most / 2)
                return false;
        if (is_authenticated(clients, address))
                return true;
        return address->connections < clients->most / 8 && clients->unauthenticated < clients->most / 4 * 3 &&
               !opens_too_fast(address, now_us);
}

struct guard_address *guard_clients_open(struct guard_clients *clients, const struct sockaddr *sa) {
        struct guard_address *address;
        char text[ADDRESS_TEXT];

        text_of(sa, text);
        address = known(clients, text);
        address->connections++;
        clients->connections++;
        clients->unauthenticated++;
        return address;
}

void guard_clients_authenticated(struct guard_clients *clients, struct guard_address *address, uint64_t now_us) {
        address->authenticated = true;
        address->authenticated_us = now_us;
        clients->unauthenticated--;
}

void guard_clients_close(struct guard_clients *clients, struct guard_address *address, bool authenticated, uint64_t now_us) {
        nd_assert(address->connections > 0 && clients->connections > 0);
        address->connections--;
        clients->connections--;
        if (authenticated)
                address->authenticated_us = now_us;
        else
                clients->unauthenticated--;
}

bool guard_clients_take_bytes(struct guard_clients *clients, struct guard_address *address, size_t bytes) {
        if (bytes > GUARD_BODIES || clients->body_bytes + bytes > GUARD_BODIES ||
            address->body_bytes + bytes > GUARD_BODIES / 2)
                return false;
        clients->body_bytes += bytes;
        address->body_bytes += bytes;
        return true;
}

void guard_clients_return_bytes(struct guard_clients *clients, struct guard_address *address, size_t bytes) {
        nd_assert(address->body_bytes >= bytes && clients->body_bytes >= bytes);
        clients->body_bytes -= bytes;
        address->body_bytes -= bytes;
}

void guard_clients_sweep(struct guard_clients *clients, uint64_t now_us) {
        nd_vector(struct guard_address *) gone = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&clients->addresses, &at));) {
                struct guard_address *address = slot->value;

                if (address->connections > 0)
                        continue;
                if (now_us - address->authenticated_us >= authenticated_for_us)
                        address->authenticated = false;
                if (!address->authenticated && now_us - address->second_us >= ND_SECOND_US)
                        nd_vector_push(&gone, address);
        }
        nd_vector_each (address, &gone) {
                (void) nd_map_remove(&clients->addresses, (*address)->text);
                address_free(*address);
        }
        nd_vector_done(&gone);
}
