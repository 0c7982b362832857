/* SPDX-License-Identifier: Apache-2.0 */
/* netplan.h - how a node reaches the world: addresses, routes and the helper's command line, computed from what the machine has
 *
 * The node's tap carries the machine's own address where the helper allows it (pasta): so the address that a kubelet registers, the one
 * that kube-proxy takes for the node's and the one that the API server dials are the same. slirp4netns has a network of its own;
 * it is put where the machine has no route to. On a bridge the node is a neighbour of the machine, with an address that follows from its name. Nothing here
 * does I/O. */
#pragma once

#include "base/strings.h"
#include "sys/netlink.h"

enum rootless_net_driver {
        NET_DRIVER_PASTA,
        NET_DRIVER_SLIRP,
        NET_DRIVER_LXC,  /* a link on one of the machine's bridges, see lxc-user-nic.h */
        NET_DRIVER_NONE, /* only lo */
        NET_DRIVER_HOST, /* the machine's own network namespace */
};

/* Whatever makes it: the node's own link to the world. */
#define NET_TAP "tap0"

enum {
        NET_MTU = 65520,
        NET_MTU_MIN = 1280, /* IPv6's own floor */
        NET_MTU_MAX = 65520,
        NET_LINK_BYTES = 16, /* bytes of a link's name */
};

struct rootless_netplan {
        enum rootless_net_driver driver;
        uint32_t mtu;
        char link[NET_LINK_BYTES];              /* the machine's, which the helper looks at, or the bridge; "" = none */
        struct nd_netlink_address addresses[2]; /* IPv4, IPv6; family 0 = none */
        struct nd_netlink_address gateways[2];
        struct nd_netlink_address network; /* slirp4netns' own */
        struct nd_netlink_address dns;     /* where the helper answers; family 0 = nowhere */
};

/* The machine, as far as the plan depends on it. */
struct rootless_netplan_facts {
        const struct nd_netlink_link_addresses *addresses;
        const struct nd_netlink_route_list *routes;
        unsigned loopback;                               /* index of lo */
        const char *(*link_name)(unsigned link, char *); /* as if_indextoname() */
        const char *bridge;                              /* what the user may have a link on; nullptr = nothing */
        uint32_t bridge_mtu;
        const char *owner; /* whose address on the bridge it is to be */
};

[[nodiscard]] struct nd_error *rootless_net_driver_parse(const char *text, enum rootless_net_driver *ret);
const char *rootless_net_driver_name(enum rootless_net_driver driver);

void rootless_netplan_make(enum rootless_net_driver driver, uint32_t mtu, const struct rootless_netplan_facts *facts,
                           struct rootless_netplan *ret);
[[nodiscard]] bool rootless_netplan_equal(const struct rootless_netplan *a, const struct rootless_netplan *b);

/* The helper's command line, for the namespaces of that process; false for drivers without a helper. The list ends with a nullptr,
 * which it counts. */
[[nodiscard]] bool rootless_netplan_helper_argv(const struct rootless_netplan *plan, int pid, struct nd_strings *ret);

/* The node's resolv.conf: the helper's address as server, the rest as the machine has it. Without a helper the machine's own text. */
[[nodiscard]] char *rootless_netplan_resolv_conf(const struct rootless_netplan *plan, const char *machine);
