/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - which ports of the host the objects of a cluster may use
 *
 * All users of the cluster who may create Services or pods can ask for ports. The user who runs the
 * node decides which they get: by default the range of node ports, and no others. */
#pragma once

#include "sys/netlink.h"

enum { POLICY_RANGES = 64 };

struct rootless_port_range {
        uint16_t first, last;
};

struct rootless_port_ranges {
        struct rootless_port_range items[POLICY_RANGES];
        size_t count;
};

struct rootless_port_policy {
        struct rootless_port_ranges node_ports, load_balancer_ports, host_ports;
        struct nd_netlink_address address; /* of the host; family 0: all */
        uint16_t lowest;                   /* lower ones cannot be opened */
        uint16_t offset;                   /* added to ports below lowest; 0: not published */
        uint16_t node_port_offset;         /* added to all node ports */
        bool has_host_addresses;           /* the node has the addresses of the host */
};

/* "all", "none", or "80,443,8000-8999". */
[[nodiscard]] struct nd_error *rootless_port_ranges_parse(const char *text, struct rootless_port_ranges *ret);
[[nodiscard]] bool rootless_port_ranges_have(const struct rootless_port_ranges *ranges, uint16_t port);
