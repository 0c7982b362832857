/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/network.h"

#include <net/if.h>
#include <string.h>

#include "sys/calls.h"
#include "sys/file.h"

/* Ignores failures: the kernel may not have this sysctl, and a node works without any of them. */
static void set_switch(const char *path, const char *value) {
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);

        if (fd >= 0)
                (void) !nd_sys->write(fd, value, strlen(value));
}

struct nd_error *rootless_network_prepare(void) {
        static const char *const switches[][2] = {
                {"/proc/sys/net/ipv4/ip_forward", "1"},
                {"/proc/sys/net/ipv6/conf/all/forwarding", "1"},
                /* Packets of an overlay arrive on one link and leave on another: strict filtering
                 * would drop them. */
                {"/proc/sys/net/ipv4/conf/all/rp_filter", "2"},
                {"/proc/sys/net/ipv4/conf/default/rp_filter", "2"},
                /* The tap has no other hosts: duplicate address detection only delays the first
                 * connection. */
                {"/proc/sys/net/ipv6/conf/default/accept_dad", "0"},
                {"/proc/sys/net/ipv6/conf/all/accept_dad", "0"},
                {"/proc/sys/net/ipv4/ping_group_range", "0 0"},
        };
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;

        for (size_t i = 0; i < nd_count_of(switches); i++)
                set_switch(switches[i][0], switches[i][1]);
        nd_try(nd_netlink_open(&netlink));
        return nd_netlink_link_up(&netlink, if_nametoindex("lo"), 0);
}

static bool wanted(const struct nd_netlink_address *address, const struct nd_netlink_address list[2]) {
        return nd_netlink_address_equal(address, &list[0]) || nd_netlink_address_equal(address, &list[1]);
}

/* Removes addresses that are no longer in the plan. Link-local addresses, which the
 * kernel added, stay. */
static struct nd_error *drop_addresses(struct nd_netlink *netlink, unsigned link, const struct rootless_netplan *plan) {
        struct nd_netlink_link_addresses list = {};
        struct nd_error *error = nd_netlink_addresses(netlink, &list);

        for (size_t i = 0; !error && i < list.count; i++)
                if (list.items[i].link == link && list.items[i].global && !wanted(&list.items[i].address, plan->addresses))
                        error = nd_netlink_link_remove_address(netlink, link, &list.items[i].address);
        nd_vector_done(&list);
        return error;
}

static struct nd_error *drop_defaults(struct nd_netlink *netlink, unsigned link, const struct rootless_netplan *plan) {
        struct nd_netlink_route_list list = {};
        struct nd_error *error = nd_netlink_routes(netlink, &list);

        for (size_t i = 0; !error && i < list.count; i++)
                if (list.items[i].link == link && list.items[i].to.prefix == 0 &&
                    !wanted(&list.items[i].gateway, plan->gateways))
                        error = nd_netlink_route_remove(netlink, &list.items[i]);
        nd_vector_done(&list);
        return error;
}

static struct nd_error *add_routes(struct nd_netlink *netlink, unsigned link, const struct rootless_netplan *plan) {
        if (plan->dns.family) { /* needed even without a default route */
                struct nd_netlink_address to = plan->dns;

                to.prefix = to.family == AF_INET ? 32 : 128;
                nd_try(nd_netlink_route_replace(netlink, &(struct nd_netlink_route) {.link = link, .to = to}));
        }
        for (size_t i = 0; i < nd_count_of(plan->gateways); i++)
                if (plan->gateways[i].family)
                        nd_try(nd_netlink_route_replace(netlink,
                                                        &(struct nd_netlink_route) {.link = link,
                                                                                    .to = {.family = plan->gateways[i].family},
                                                                                    .gateway = plan->gateways[i]}));
        return nullptr;
}

struct nd_error *rootless_network_apply(const struct rootless_netplan *plan) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        unsigned link;

        if (plan->driver == NET_DRIVER_NONE || plan->driver == NET_DRIVER_HOST)
                return nullptr;
        if (plan->driver != NET_DRIVER_LXC)
                nd_try(nd_netlink_tap_make(NET_TAP));
        link = if_nametoindex(NET_TAP);
        if (link == 0) /* the supervisor creates it later and applies the plan again */
                return nullptr;
        nd_try(nd_netlink_open(&netlink));
        nd_try(nd_netlink_link_up(&netlink, link, plan->mtu));
        nd_try(drop_defaults(&netlink, link, plan));
        nd_try(drop_addresses(&netlink, link, plan));
        for (size_t i = 0; i < nd_count_of(plan->addresses); i++)
                if (plan->addresses[i].family)
                        nd_try(nd_netlink_link_add_address(&netlink, link, &plan->addresses[i]));
        return add_routes(&netlink, link, plan);
}

/* ---- the plan as a message ---- */

static void add_address(struct nd_text *text, const char *key, const struct nd_netlink_address *address) {
        char buffer[ND_ADDRESS_TEXT];
        nd_autofree char *value = nullptr;

        if (address->family == 0)
                return;
        value = nd_format("%s/%u", nd_netlink_address_text(address, buffer), address->prefix);
        rootless_control_add(text, key, value);
}

void rootless_network_format(struct nd_text *text, const struct rootless_netplan *plan, const char *resolv) {
        nd_autofree char *mtu = nd_format("%u", plan->mtu);

        rootless_control_begin(text, "network");
        rootless_control_add(text, "driver", rootless_net_driver_name(plan->driver));
        rootless_control_add(text, "mtu", mtu);
        for (size_t i = 0; i < nd_count_of(plan->addresses); i++) {
                add_address(text, "address", &plan->addresses[i]);
                add_address(text, "gateway", &plan->gateways[i]);
        }
        add_address(text, "dns", &plan->dns);
        if (resolv)
                rootless_control_add(text, "resolv", resolv);
}

static struct nd_error *take_address(const struct rootless_control_field *field, struct nd_netlink_address list[2]) {
        struct nd_netlink_address address;

        if (nd_netlink_address_parse(field->value, &address) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid %s '%s': not an address", field->key, field->value);
        list[address.family == AF_INET6] = address;
        return nullptr;
}

struct nd_error *rootless_network_parse(const struct rootless_control *message, struct rootless_netplan *ret) {
        struct rootless_netplan plan = {};
        const char *driver = rootless_control_get(message, "driver"), *mtu = rootless_control_get(message, "mtu");
        struct nd_netlink_address dns[2] = {};

        nd_try(rootless_net_driver_parse(driver ? driver : "", &plan.driver));
        if (!mtu || nd_text_parse_u32(mtu, &plan.mtu) < 0 || plan.mtu < NET_MTU_MIN || plan.mtu > NET_MTU_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid MTU: must be %d to %d", NET_MTU_MIN, NET_MTU_MAX);
        nd_vector_each (field, &message->fields) {
                if (nd_streq(field->key, "address"))
                        nd_try(take_address(field, plan.addresses));
                else if (nd_streq(field->key, "gateway"))
                        nd_try(take_address(field, plan.gateways));
                else if (nd_streq(field->key, "dns"))
                        nd_try(take_address(field, dns));
        }
        plan.dns = dns[0].family ? dns[0] : dns[1];
        *ret = plan;
        return nullptr;
}
