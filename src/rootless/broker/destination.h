/* SPDX-License-Identifier: Apache-2.0 */
/* destination.h - where the broker connects to for the node
 *
 * Requests come from root of the node, who is hostile. The broker must not reach more for it than
 * the node's own network does:
 *
 *      refused                          because
 *      addresses of the host            services there trust clients of this host
 *      loopback, unspecified            services of the host that trust its users
 *      link-local                       services of a cloud for its machine (169.254.169.254)
 *      multicast, broadcast, reserved   no TCP
 *      IPv4 addresses in IPv6 ones      judged as the IPv4 address: mapped, NAT64, 6to4
 *      other forms of these             they may lead to any of the above: compatible, local NAT64,
 *                                       Teredo, site-local
 *      ports of no registry             the broker is for pulls */
#pragma once

#include "sys/netlink.h"

enum { BROKER_PORTS = 16 };

struct rootless_broker_ports {
        uint16_t items[BROKER_PORTS];
        size_t count;
};

/* Parses "443,5000". */
[[nodiscard]] struct nd_error *rootless_broker_ports_parse(const char *text, struct rootless_broker_ports *ret);

/* Returns why a connection is refused, nullptr if it is allowed. own: the addresses of the host. */
[[nodiscard]] const char *rootless_broker_refusal(const struct rootless_broker_ports *ports,
                                                  const struct nd_netlink_link_addresses *own,
                                                  const struct nd_netlink_address *to, uint16_t port);
