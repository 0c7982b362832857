/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.h - links, addresses and routes of the network namespace we are in, and taps that outlive who reads them */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

/* An address of either family with the length of its prefix. */
struct nd_netlink_address {
        int family; /* AF_INET or AF_INET6; 0 = none */
        union {
                struct in_addr v4;
                struct in6_addr v6;
                uint8_t bytes[16];
        };
        uint8_t prefix;
};

enum { ND_ADDRESS_TEXT = INET6_ADDRSTRLEN };

/* "10.0.0.1" or "fd00::1", without the prefix. Returns its argument. */
const char *nd_netlink_address_text(const struct nd_netlink_address *address, char buffer[static ND_ADDRESS_TEXT]);

/* Reads "10.0.0.1" or "10.0.0.1/24"; without a prefix it is the whole address. Returns -EINVAL for anything else. */
[[nodiscard]] int nd_netlink_address_parse(const char *text, struct nd_netlink_address *ret);
[[nodiscard]] bool nd_netlink_address_equal(const struct nd_netlink_address *a, const struct nd_netlink_address *b);

/* What the kernel lists. */
struct nd_netlink_link_address {
        unsigned link;
        struct nd_netlink_address address;
        bool global;    /* neither link-local nor of the host only */
        bool temporary; /* IPv6 privacy address, or not usable (yet) */
};
struct nd_netlink_route {
        unsigned link;
        struct nd_netlink_address to;      /* family is set; prefix 0 = default */
        struct nd_netlink_address gateway; /* family 0 = on the link */
        uint32_t metric;
};
struct nd_netlink_link_addresses {
        struct nd_netlink_link_address *items;
        size_t count;
        size_t capacity;
};
struct nd_netlink_route_list {
        struct nd_netlink_route *items;
        size_t count;
        size_t capacity;
};

struct nd_netlink {
        int fd;
        uint32_t sequence;
};
#define ND_NETLINK_NONE ((struct nd_netlink) {.fd = -EBADF})

[[nodiscard]] struct nd_error *nd_netlink_open(struct nd_netlink *ret);
void nd_netlink_done(struct nd_netlink *netlink);

/* A socket that becomes readable when addresses or routes change; what it holds need only be drained. */
[[nodiscard]] struct nd_error *nd_netlink_watch(int *ret_fd);

[[nodiscard]] struct nd_error *nd_netlink_addresses(struct nd_netlink *netlink, struct nd_netlink_link_addresses *ret);
[[nodiscard]] struct nd_error *nd_netlink_routes(struct nd_netlink *netlink,
                                                 struct nd_netlink_route_list *ret); /* main table, unicast */

/* Brings a link up; mtu 0 leaves it. */
[[nodiscard]] struct nd_error *nd_netlink_link_up(struct nd_netlink *netlink, unsigned link, uint32_t mtu);
[[nodiscard]] struct nd_error *nd_netlink_link_add_address(struct nd_netlink *netlink, unsigned link,
                                                           const struct nd_netlink_address *address);
[[nodiscard]] struct nd_error *nd_netlink_link_remove_address(struct nd_netlink *netlink, unsigned link,
                                                              const struct nd_netlink_address *address);

/* Adds a route or takes the place of the one with the same destination and metric. The gateway need not be within an address's prefix. */
[[nodiscard]] struct nd_error *nd_netlink_route_replace(struct nd_netlink *netlink, const struct nd_netlink_route *route);
[[nodiscard]] struct nd_error *nd_netlink_route_remove(struct nd_netlink *netlink, const struct nd_netlink_route *route);

/* Packets whose mark has these bits go to this machine, whatever their address is: a rule before all others, and a table with one local route. */
[[nodiscard]] struct nd_error *nd_netlink_rule_deliver_marked(struct nd_netlink *netlink, int family, uint32_t bits,
                                                              uint32_t table);

/* Makes a tap of that name that stays when nobody holds it open. One that is there already is fine. */
[[nodiscard]] struct nd_error *nd_netlink_tap_make(const char *name);

/* Whether somebody holds the tap open at the other side. */
[[nodiscard]] bool nd_netlink_link_has_carrier(const char *name);
