/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/discover.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "rootless/network/lxc-user-nic.h"
#include "sys/file.h"

enum { RESOLV_BYTES = 64 * 1024 };

static const char *link_name(unsigned link, char *buffer) {
        return if_indextoname(link, buffer);
}

struct nd_error *rootless_network_discover(const char *name, enum rootless_net_driver driver, uint32_t mtu,
                                           struct rootless_netplan *ret, char **ret_resolv) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        struct nd_netlink_link_addresses addresses = {};
        struct nd_netlink_route_list routes = {};
        nd_autofree char *machine = nullptr, *owner = nd_format("%u/%s", geteuid(), name);
        char bridge[NET_LINK_BYTES];
        uint32_t bridge_mtu = 0;
        struct nd_error *error = nd_netlink_open(&netlink);

        if (!error && driver == NET_DRIVER_LXC)
                error = rootless_lxc_bridge_find(bridge, &bridge_mtu);
        if (!error)
                error = nd_netlink_addresses(&netlink, &addresses);
        if (!error)
                error = nd_netlink_routes(&netlink, &routes);
        if (!error)
                rootless_netplan_make(driver, mtu,
                                      &(struct rootless_netplan_facts) {.addresses = &addresses,
                                                                        .routes = &routes,
                                                                        .loopback = if_nametoindex("lo"),
                                                                        .link_name = link_name,
                                                                        .bridge = driver == NET_DRIVER_LXC ? bridge : nullptr,
                                                                        .bridge_mtu = bridge_mtu,
                                                                        .owner = owner},
                                      ret);
        nd_vector_done(&addresses);
        nd_vector_done(&routes);
        nd_try(nd_error_wrap(error, "read the host's network configuration"));

        /* A host without resolv.conf has no name servers for the node. */
        nd_ignore(nd_file_read_kernel("/etc/resolv.conf", RESOLV_BYTES, &machine));
        *ret_resolv = rootless_netplan_resolv_conf(ret, machine ? machine : "");
        return nullptr;
}

static struct nd_error *read_mtu(unsigned link, uint32_t *ret) {
        struct ifreq request = {};
        nd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || !if_indextoname(link, request.ifr_name) || ioctl(fd, SIOCGIFMTU, &request) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "read the MTU of the host's link %u", link);
        *ret = (uint32_t) request.ifr_mtu;
        return nullptr;
}

struct nd_error *rootless_network_link_mtu(int family, uint32_t *ret) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        struct nd_netlink_link_addresses addresses = {};
        struct nd_netlink_route_list routes = {};
        struct nd_error *error = nd_netlink_open(&netlink);
        unsigned link = 0;

        if (!error)
                error = nd_netlink_addresses(&netlink, &addresses);
        if (!error)
                error = nd_netlink_routes(&netlink, &routes);
        if (!error)
                link = rootless_netplan_link(&(struct rootless_netplan_facts) {.addresses = &addresses,
                                                                               .routes = &routes,
                                                                               .loopback = if_nametoindex("lo")},
                                             family);
        nd_vector_done(&addresses);
        nd_vector_done(&routes);
        nd_try(nd_error_wrap(error, "read the host's network configuration"));
        if (link == 0)
                return nd_error_new(ND_PRECONDITION, 0, "the host has no network with IPv%d addresses",
                                    family == AF_INET6 ? 6 : 4);
        return read_mtu(link, ret);
}
