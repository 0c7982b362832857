/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.h - links, addresses and routes of our network namespace, and persistent tap devices */
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

enum {
        ND_ADDRESS_TEXT = INET6_ADDRSTRLEN,
        ND_MAC = 6, /* bytes of a MAC address */
};

/* "10.0.0.1" or "fd00::1", without the prefix. Returns its argument. */
const char *nd_netlink_address_text(const struct nd_netlink_address *address, char buffer[static ND_ADDRESS_TEXT]);

/* Parses "10.0.0.1" or "10.0.0.1/24"; without a prefix length it is a single address. Returns
 * -EINVAL for anything else. */
[[nodiscard]] int nd_netlink_address_parse(const char *text, struct nd_netlink_address *ret);
[[nodiscard]] bool nd_netlink_address_equal(const struct nd_netlink_address *a, const struct nd_netlink_address *b);

/* Entries of the kernel's lists. */
struct nd_netlink_link_address {
        unsigned link;
        struct nd_netlink_address address;
        bool global;    /* neither link-local nor host scope */
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

/* A socket that becomes readable when addresses or routes change; drain it and list again. */
[[nodiscard]] struct nd_error *nd_netlink_watch(int *ret_fd);

[[nodiscard]] struct nd_error *nd_netlink_addresses(struct nd_netlink *netlink, struct nd_netlink_link_addresses *ret);
/* Main table, unicast. */
[[nodiscard]] struct nd_error *nd_netlink_routes(struct nd_netlink *netlink, struct nd_netlink_route_list *ret);

/* Brings a link up; mtu 0 keeps the MTU. */
[[nodiscard]] struct nd_error *nd_netlink_link_up(struct nd_netlink *netlink, unsigned link, uint32_t mtu);
[[nodiscard]] struct nd_error *nd_netlink_link_add_address(struct nd_netlink *netlink, unsigned link,
                                                           const struct nd_netlink_address *address);
[[nodiscard]] struct nd_error *nd_netlink_link_remove_address(struct nd_netlink *netlink, unsigned link,
                                                              const struct nd_netlink_address *address);

/* Adds a route or replaces the one with the same destination and metric. The gateway need not be
 * within an address's prefix. */
[[nodiscard]] struct nd_error *nd_netlink_route_replace(struct nd_netlink *netlink, const struct nd_netlink_route *route);
[[nodiscard]] struct nd_error *nd_netlink_route_remove(struct nd_netlink *netlink, const struct nd_netlink_route *route);

/* Delivers packets whose mark has these bits to this host, for any destination address: a rule
 * before all others, and a table with one local route. */
[[nodiscard]] struct nd_error *nd_netlink_rule_deliver_marked(struct nd_netlink *netlink, int family, uint32_t bits,
                                                              uint32_t table);

/* A VXLAN device that does not learn: where frames go is set by the functions below. */
struct nd_netlink_vxlan {
        const char *name;
        uint32_t vni;
        uint16_t port;         /* UDP port at which it receives */
        uint16_t source_ports; /* the first UDP port from which it sends */
        uint16_t source_last;  /* and the last */
        int family;            /* of the hosts that frames go to */
        uint8_t mac[ND_MAC];
};
/* Creates a VXLAN device; an existing link of that name is fine. ND_UNIMPLEMENTED if the kernel has
 * no VXLAN. */
[[nodiscard]] struct nd_error *nd_netlink_vxlan_make(struct nd_netlink *netlink, const struct nd_netlink_vxlan *vxlan);
[[nodiscard]] struct nd_error *nd_netlink_link_remove(struct nd_netlink *netlink, unsigned link);

/* Where a VXLAN device finds a gateway: the gateway's address has this MAC address, and frames for
 * it go to this host and UDP port. Replaces what was set for the gateway or the MAC address. */
struct nd_netlink_tunnel {
        unsigned link;
        struct nd_netlink_address gateway;
        uint8_t mac[ND_MAC];
        struct nd_netlink_address host;
        uint16_t port;
};
[[nodiscard]] struct nd_error *nd_netlink_tunnel_replace(struct nd_netlink *netlink, const struct nd_netlink_tunnel *tunnel);
[[nodiscard]] struct nd_error *nd_netlink_tunnel_remove(struct nd_netlink *netlink, const struct nd_netlink_tunnel *tunnel);

/* Creates a persistent tap of that name. An existing one is fine. */
[[nodiscard]] struct nd_error *nd_netlink_tap_make(const char *name);

/* Whether a process holds the tap open. */
[[nodiscard]] bool nd_netlink_link_has_carrier(const char *name);
