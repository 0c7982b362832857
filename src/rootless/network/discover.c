/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/discover.h"

#include <net/if.h>
#include <unistd.h>

#include "base/text.h"
#include "rootless/network/lxc-user-nic.h"
#include "sys/file.h"

enum { RESOLV_BYTES = 64 * 1024 };

static const char *link_name(unsigned link, char *buffer) {
        return if_indextoname(link, buffer);
}

struct nd_error *nd_launch_network(const char *name, enum nd_net_driver driver, uint32_t mtu, struct nd_netplan *ret,
                                   char **ret_resolv) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        nd_link_addresses addresses = {};
        nd_routes routes = {};
        nd_autofree char *machine = nullptr, *owner = nd_format("%u/%s", geteuid(), name);
        char bridge[ND_NET_LINK];
        uint32_t bridge_mtu = 0;
        struct nd_error *error = nd_netlink_open(&netlink);

        if (!error && driver == ND_NET_LXC)
                error = nd_usernet_bridge(bridge, &bridge_mtu);
        if (!error)
                error = nd_netlink_addresses(&netlink, &addresses);
        if (!error)
                error = nd_netlink_routes(&netlink, &routes);
        if (!error)
                nd_netplan_make(driver, mtu,
                                &(struct nd_net_facts) {.addresses = &addresses,
                                                        .routes = &routes,
                                                        .loopback = if_nametoindex("lo"),
                                                        .link_name = link_name,
                                                        .bridge = driver == ND_NET_LXC ? bridge : nullptr,
                                                        .bridge_mtu = bridge_mtu,
                                                        .owner = owner},
                                ret);
        nd_vector_done(&addresses);
        nd_vector_done(&routes);
        nd_try(nd_error_wrap(error, "look at the machine's network"));

        nd_error_free(
                nd_file_read_kernel("/etc/resolv.conf", RESOLV_BYTES, &machine)); /* a machine without names has none for us */
        *ret_resolv = nd_netplan_resolv(ret, machine ? machine : "");
        return nullptr;
}
