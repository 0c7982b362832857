/* SPDX-License-Identifier: Apache-2.0 */
/* netplan.h - a node's network: addresses, routes and the helper's command line, computed from the
 * host's configuration
 *
 * With a helper the node's tap has the host's own addresses: then the address that a kubelet
 * registers, that kube-proxy uses for the node and that the API server dials is the same.
 * slirp4netns itself, the gateway and name server, is on a network of its own; it is chosen so that
 * the host has no route to it. On a bridge the node is a neighbour of the host, with an address
 * derived from its name. Nothing here does I/O. */
#pragma once

#include "base/strings.h"
#include "sys/netlink.h"

enum rootless_net_driver {
        NET_DRIVER_PASTA,
        NET_DRIVER_SLIRP,
        NET_DRIVER_LXC,  /* a link on a bridge of the host, see lxc-user-nic.h */
        NET_DRIVER_NONE, /* only lo */
        NET_DRIVER_HOST, /* the host's network namespace */
};

/* Not slirp4netns: it delivers frames for 127.0.0.1 that root of the node writes to the tap. pasta
 * of Debian 13 stalls streams out of the node instead, see net/pasta.h. */
#define NET_DRIVER_DEFAULT NET_DRIVER_PASTA

/* The node's external link, with every driver. */
#define NET_TAP "tap0"

enum {
        NET_MTU = 65520,
        NET_MTU_MIN = 1280, /* the minimum for IPv6 */
        NET_MTU_MAX = 65520,
        NET_LINK_BYTES = 16, /* size of a link name */
};

struct rootless_netplan {
        enum rootless_net_driver driver;
        uint32_t mtu;
        /* link of the host that the helper uses, or the bridge; "" = none */
        char link[NET_LINK_BYTES];
        struct nd_netlink_address addresses[2]; /* IPv4, IPv6; family 0 = none */
        struct nd_netlink_address gateways[2];
        struct nd_netlink_address network; /* slirp4netns' own */
        struct nd_netlink_address dns;     /* where the helper serves DNS; family 0 = nowhere */
};

/* The host's configuration, as far as the plan depends on it. */
struct rootless_netplan_facts {
        const struct nd_netlink_link_addresses *addresses;
        const struct nd_netlink_route_list *routes;
        unsigned loopback;                               /* index of lo */
        const char *(*link_name)(unsigned link, char *); /* as if_indextoname() */
        /* the bridge that the user may use; nullptr = none */
        const char *bridge;
        uint32_t bridge_mtu;
        const char *owner; /* name from which the address on the bridge is derived */
};

[[nodiscard]] struct nd_error *rootless_net_driver_parse(const char *text, enum rootless_net_driver *ret);
const char *rootless_net_driver_name(enum rootless_net_driver driver);

/* The host's link of the default route, or with an address of that family; 0 = none. */
[[nodiscard]] unsigned rootless_netplan_link(const struct rootless_netplan_facts *facts, int family);

void rootless_netplan_make(enum rootless_net_driver driver, uint32_t mtu, const struct rootless_netplan_facts *facts,
                           struct rootless_netplan *ret);
[[nodiscard]] bool rootless_netplan_equal(const struct rootless_netplan *a, const struct rootless_netplan *b);

/* Makes the helper's command line for the namespaces of that process; false for drivers without a
 * helper. The list ends with a nullptr, which it counts. Descriptor 3 of the helper must be a pidfd
 * of that process: slirp4netns, unlike pasta, does not notice the end of its namespaces. */
[[nodiscard]] bool rootless_netplan_helper_argv(const struct rootless_netplan *plan, int pid, struct nd_strings *ret);

/* Makes the node's resolv.conf: the helper's address as server, other lines as on the host. Without
 * a helper it is the host's text. */
[[nodiscard]] char *rootless_netplan_resolv_conf(const struct rootless_netplan *plan, const char *machine);
