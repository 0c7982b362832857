/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.c - see netlink.h
 *
 * Theory of operation
 *   One request at a time: a message is built in a buffer of fixed size, sent, and answered by an
 *   acknowledgement or, for a list, by messages up to NLMSG_DONE. Only the kernel can answer (the
 *   socket is connected to it), so length checks guard against mistakes, not malice. */
#include "sys/netlink.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/text.h"
#include "sys/calls.h"
#include "sys/file.h"

enum {
        REQUEST_BYTES = 256,
        ANSWER_BYTES = 64 * 1024,
        LIST_CEILING = 16 * 1024, /* maximum routes or addresses of one host */
        ANSWER_SECONDS = 5,
};

const char *nd_netlink_address_text(const struct nd_netlink_address *address, char buffer[static ND_ADDRESS_TEXT]) {
        if (address->family == 0 || !inet_ntop(address->family, address->bytes, buffer, ND_ADDRESS_TEXT))
                buffer[0] = '\0';
        return buffer;
}

int nd_netlink_address_parse(const char *text, struct nd_netlink_address *ret) {
        struct nd_netlink_address address = {};
        const char *slash = strchr(text, '/');
        char host[ND_ADDRESS_TEXT];
        size_t length = slash ? (size_t) (slash - text) : strlen(text);
        uint64_t prefix;

        if (length >= sizeof host)
                return -EINVAL;
        memcpy(host, text, length);
        host[length] = '\0';
        address.family = strchr(host, ':') ? AF_INET6 : AF_INET;
        if (inet_pton(address.family, host, address.bytes) != 1)
                return -EINVAL;
        prefix = address.family == AF_INET ? 32 : 128;
        if (slash && nd_text_parse_u64(slash + 1, prefix, &prefix) < 0)
                return -EINVAL;
        address.prefix = (uint8_t) prefix;
        *ret = address;
        return 0;
}

static size_t address_size(int family) {
        return family == AF_INET ? 4 : 16;
}

bool nd_netlink_address_equal(const struct nd_netlink_address *a, const struct nd_netlink_address *b) {
        return a->family == b->family && a->prefix == b->prefix &&
               (a->family == 0 || memcmp(a->bytes, b->bytes, address_size(a->family)) == 0);
}

struct nd_error *nd_netlink_open(struct nd_netlink *ret) {
        struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
        struct timeval patience = {.tv_sec = ANSWER_SECONDS};
        nd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

        if (fd < 0 || connect(fd, (struct sockaddr *) &kernel, sizeof kernel) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open netlink socket");
        *ret = (struct nd_netlink) {.fd = nd_take_fd(fd)};
        return nullptr;
}

void nd_netlink_done(struct nd_netlink *netlink) {
        nd_close_fd(&netlink->fd);
}

struct nd_error *nd_netlink_watch(int *ret_fd) {
        struct sockaddr_nl address = {.nl_family = AF_NETLINK,
                                      .nl_groups =
                                              RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE};
        nd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

        if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof address) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "subscribe to address and route changes");
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* ---- requests ---- */

struct request {
        union {
                struct nlmsghdr header;
                uint8_t bytes[REQUEST_BYTES];
        };
};

static struct request request_new(uint16_t type, uint16_t flags, const void *body, size_t length) {
        struct request r = {};

        r.header = (struct nlmsghdr) {
                .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_len = (uint32_t) NLMSG_LENGTH(length)};
        memcpy(NLMSG_DATA(&r.header), body, length);
        return r;
}

static void request_add(struct request *r, uint16_t type, const void *value, size_t length) {
        size_t at = NLMSG_ALIGN(r->header.nlmsg_len);
        struct rtattr attribute = {.rta_type = type, .rta_len = (uint16_t) RTA_LENGTH(length)};

        if (at + RTA_SPACE(length) > sizeof r->bytes)
                abort(); /* the callers' attributes are few and of fixed size */
        memcpy(r->bytes + at, &attribute, sizeof attribute);
        if (length > 0)
                memcpy(r->bytes + at + RTA_LENGTH(0), value, length);
        r->header.nlmsg_len = (uint32_t) (at + RTA_LENGTH(length));
}

static int request_send(struct nd_netlink *netlink, struct request *r) {
        r->header.nlmsg_seq = ++netlink->sequence;
        return send(netlink->fd, r->bytes, r->header.nlmsg_len, 0) < 0 ? -errno : 0;
}

typedef void (*message_reader)(const struct nlmsghdr *message, void *userdata);

/* Parses one message of an answer. Returns 1 at the end of the answer, 0 if there is more,
 * -errno. */
static int answer_message(struct nd_netlink *netlink, const struct nlmsghdr *message, message_reader reader, void *userdata) {
        if (message->nlmsg_seq != netlink->sequence)
                return 0; /* answers an earlier request that timed out */
        if (message->nlmsg_type == NLMSG_DONE)
                return 1;
        if (message->nlmsg_type == NLMSG_ERROR) {
                const struct nlmsgerr *end = NLMSG_DATA(message);

                return end->error < 0 ? end->error : 1;
        }
        if (reader)
                reader(message, userdata);
        return 0;
}

static int transact(struct nd_netlink *netlink, struct request *r, message_reader reader, void *userdata) {
        nd_autofree char *answer = nd_malloc(ANSWER_BYTES);
        int status = request_send(netlink, r);

        while (status == 0) {
                ssize_t n = recv(netlink->fd, answer, ANSWER_BYTES, 0);
                size_t left = n < 0 ? 0 : (size_t) n;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? -ETIMEDOUT : -errno;
                for (const uint8_t *at = (const uint8_t *) answer; status == 0;) {
                        const struct nlmsghdr *m = (const void *) at;
                        size_t step;

                        if (left < sizeof *m || m->nlmsg_len < sizeof *m || m->nlmsg_len > left)
                                break;
                        status = answer_message(netlink, m, reader, userdata);
                        step = NLMSG_ALIGN(m->nlmsg_len);
                        at += step;
                        left -= step < left ? step : left;
                }
        }
        return status < 0 ? status : 0;
}

/* ---- lists ---- */

/* A message's attributes; the kernel's own macros cast from char *, which clang warns about. */
static const struct rtattr *attribute_within(const void *at, size_t left) {
        const struct rtattr *a = at;

        return left >= sizeof *a && a->rta_len >= sizeof *a && a->rta_len <= left ? a : nullptr;
}

static const struct rtattr *first_attribute(const struct nlmsghdr *message, size_t body, size_t *ret_left) {
        size_t before = NLMSG_LENGTH(NLMSG_ALIGN(body));

        *ret_left = message->nlmsg_len > before ? message->nlmsg_len - before : 0;
        return attribute_within((const uint8_t *) message + before, *ret_left);
}

static const struct rtattr *next_attribute(const struct rtattr *a, size_t *left) {
        size_t step = RTA_ALIGN(a->rta_len);

        *left -= step < *left ? step : *left;
        return attribute_within((const uint8_t *) a + step, *left);
}

static void read_address_bytes(const struct rtattr *attribute, struct nd_netlink_address *ret) {
        if (RTA_PAYLOAD(attribute) == address_size(ret->family))
                memcpy(ret->bytes, RTA_DATA(attribute), address_size(ret->family));
        else
                ret->family = 0;
}

static void on_address(const struct nlmsghdr *message, void *userdata) {
        struct nd_netlink_link_addresses *list = userdata;
        const struct ifaddrmsg *body = NLMSG_DATA(message);
        struct nd_netlink_link_address found = {.link = body->ifa_index,
                                                .address = {.family = body->ifa_family, .prefix = body->ifa_prefixlen},
                                                .global = body->ifa_scope == RT_SCOPE_UNIVERSE};
        uint32_t flags = body->ifa_flags;
        size_t left;
        bool local = false;

        if (message->nlmsg_type != RTM_NEWADDR || (body->ifa_family != AF_INET && body->ifa_family != AF_INET6))
                return;
        for (const struct rtattr *a = first_attribute(message, sizeof *body, &left); a; a = next_attribute(a, &left)) {
                /* On a point-to-point link IFA_ADDRESS is the peer, and IFA_LOCAL is our
                 * address. */
                if (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !local))
                        read_address_bytes(a, &found.address);
                local = local || a->rta_type == IFA_LOCAL;
                if (a->rta_type == IFA_FLAGS && RTA_PAYLOAD(a) == sizeof flags)
                        memcpy(&flags, RTA_DATA(a), sizeof flags);
        }
        found.temporary = (flags & (IFA_F_TEMPORARY | IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED)) &&
                          body->ifa_family == AF_INET6;
        if (found.address.family != 0 && list->count < LIST_CEILING)
                nd_vector_push(list, found);
}

static void on_route(const struct nlmsghdr *message, void *userdata) {
        struct nd_netlink_route_list *list = userdata;
        const struct rtmsg *body = NLMSG_DATA(message);
        struct nd_netlink_route found = {.to = {.family = body->rtm_family, .prefix = body->rtm_dst_len}};
        uint32_t table = body->rtm_table;
        size_t left;

        if (message->nlmsg_type != RTM_NEWROUTE || body->rtm_type != RTN_UNICAST ||
            (body->rtm_family != AF_INET && body->rtm_family != AF_INET6))
                return;
        for (const struct rtattr *a = first_attribute(message, sizeof *body, &left); a; a = next_attribute(a, &left)) {
                if (a->rta_type == RTA_DST)
                        read_address_bytes(a, &found.to);
                if (a->rta_type == RTA_GATEWAY) {
                        found.gateway = (struct nd_netlink_address) {.family = body->rtm_family,
                                                                     .prefix = body->rtm_family == AF_INET ? 32 : 128};
                        read_address_bytes(a, &found.gateway);
                }
                if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == sizeof found.link)
                        memcpy(&found.link, RTA_DATA(a), sizeof found.link);
                if (a->rta_type == RTA_PRIORITY && RTA_PAYLOAD(a) == sizeof found.metric)
                        memcpy(&found.metric, RTA_DATA(a), sizeof found.metric);
                if (a->rta_type == RTA_TABLE && RTA_PAYLOAD(a) == sizeof table)
                        memcpy(&table, RTA_DATA(a), sizeof table);
        }
        if (table == RT_TABLE_MAIN && found.to.family != 0 && found.link != 0 && list->count < LIST_CEILING)
                nd_vector_push(list, found);
}

struct nd_error *nd_netlink_addresses(struct nd_netlink *netlink, struct nd_netlink_link_addresses *ret) {
        struct request r = request_new(RTM_GETADDR, NLM_F_DUMP, &(struct ifaddrmsg) {}, sizeof(struct ifaddrmsg));
        struct nd_netlink_link_addresses list = {};
        int status = transact(netlink, &r, on_address, &list);

        if (status < 0) {
                nd_vector_done(&list);
                return nd_error_new(nd_error_code_of(-status), -status, "list addresses");
        }
        *ret = list;
        return nullptr;
}

struct nd_error *nd_netlink_routes(struct nd_netlink *netlink, struct nd_netlink_route_list *ret) {
        struct request r = request_new(RTM_GETROUTE, NLM_F_DUMP, &(struct rtmsg) {}, sizeof(struct rtmsg));
        struct nd_netlink_route_list list = {};
        int status = transact(netlink, &r, on_route, &list);

        if (status < 0) {
                nd_vector_done(&list);
                return nd_error_new(nd_error_code_of(-status), -status, "list routes");
        }
        *ret = list;
        return nullptr;
}

/* ---- changes ---- */

struct nd_error *nd_netlink_link_up(struct nd_netlink *netlink, unsigned link, uint32_t mtu) {
        struct ifinfomsg body = {.ifi_index = (int) link, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
        struct request r = request_new(RTM_NEWLINK, NLM_F_ACK, &body, sizeof body);
        int status;

        if (mtu > 0)
                request_add(&r, IFLA_MTU, &mtu, sizeof mtu);
        status = transact(netlink, &r, nullptr, nullptr);
        if (status < 0)
                return nd_error_new(nd_error_code_of(-status), -status, "bring up network interface %u", link);
        return nullptr;
}

static int change_address(struct nd_netlink *netlink, uint16_t type, uint16_t flags, unsigned link,
                          const struct nd_netlink_address *address) {
        struct ifaddrmsg body = {.ifa_family = (uint8_t) address->family,
                                 .ifa_prefixlen = address->prefix,
                                 .ifa_flags = address->family == AF_INET6 ? IFA_F_NODAD : 0,
                                 .ifa_index = link};
        struct request r = request_new(type, NLM_F_ACK | flags, &body, sizeof body);

        request_add(&r, IFA_LOCAL, address->bytes, address_size(address->family));
        request_add(&r, IFA_ADDRESS, address->bytes, address_size(address->family));
        return transact(netlink, &r, nullptr, nullptr);
}

struct nd_error *nd_netlink_link_add_address(struct nd_netlink *netlink, unsigned link,
                                             const struct nd_netlink_address *address) {
        int status = change_address(netlink, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, link, address);
        char text[ND_ADDRESS_TEXT];

        if (status < 0 && status != -EEXIST)
                return nd_error_new(nd_error_code_of(-status), -status, "add address %s/%u",
                                    nd_netlink_address_text(address, text), address->prefix);
        return nullptr;
}

struct nd_error *nd_netlink_link_remove_address(struct nd_netlink *netlink, unsigned link,
                                                const struct nd_netlink_address *address) {
        int status = change_address(netlink, RTM_DELADDR, 0, link, address);
        char text[ND_ADDRESS_TEXT];

        if (status < 0 && status != -EADDRNOTAVAIL)
                return nd_error_new(nd_error_code_of(-status), -status, "remove address %s/%u",
                                    nd_netlink_address_text(address, text), address->prefix);
        return nullptr;
}

static int change_route(struct nd_netlink *netlink, uint16_t type, uint16_t flags, const struct nd_netlink_route *route) {
        struct rtmsg body = {.rtm_family = (uint8_t) route->to.family,
                             .rtm_dst_len = route->to.prefix,
                             .rtm_table = RT_TABLE_MAIN,
                             .rtm_protocol = RTPROT_STATIC,
                             .rtm_scope =
                                     route->gateway.family || route->to.family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                             .rtm_type = RTN_UNICAST,
                             .rtm_flags = route->gateway.family ? RTNH_F_ONLINK : 0};
        struct request r = request_new(type, NLM_F_ACK | flags, &body, sizeof body);

        if (route->to.prefix > 0)
                request_add(&r, RTA_DST, route->to.bytes, address_size(route->to.family));
        if (route->gateway.family)
                request_add(&r, RTA_GATEWAY, route->gateway.bytes, address_size(route->gateway.family));
        request_add(&r, RTA_OIF, &route->link, sizeof route->link);
        if (route->metric)
                request_add(&r, RTA_PRIORITY, &route->metric, sizeof route->metric);
        return transact(netlink, &r, nullptr, nullptr);
}

struct nd_error *nd_netlink_route_replace(struct nd_netlink *netlink, const struct nd_netlink_route *route) {
        int status = change_route(netlink, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route);
        char to[ND_ADDRESS_TEXT], gateway[ND_ADDRESS_TEXT];

        if (status < 0)
                return nd_error_new(nd_error_code_of(-status), -status, "add route to %s/%u via '%s'",
                                    nd_netlink_address_text(&route->to, to), route->to.prefix,
                                    nd_netlink_address_text(&route->gateway, gateway));
        return nullptr;
}

struct nd_error *nd_netlink_route_remove(struct nd_netlink *netlink, const struct nd_netlink_route *route) {
        int status = change_route(netlink, RTM_DELROUTE, 0, route);
        char to[ND_ADDRESS_TEXT];

        if (status < 0 && status != -ESRCH)
                return nd_error_new(nd_error_code_of(-status), -status, "remove route to %s/%u",
                                    nd_netlink_address_text(&route->to, to), route->to.prefix);
        return nullptr;
}

static int add_local_route(struct nd_netlink *netlink, int family, uint32_t table) {
        struct rtmsg body = {.rtm_family = (uint8_t) family,
                             .rtm_protocol = RTPROT_STATIC,
                             .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                             .rtm_type = RTN_LOCAL};
        struct request r = request_new(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof body);
        unsigned loopback = if_nametoindex("lo");

        request_add(&r, RTA_TABLE, &table, sizeof table);
        request_add(&r, RTA_OIF, &loopback, sizeof loopback);
        return transact(netlink, &r, nullptr, nullptr);
}

struct nd_error *nd_netlink_rule_deliver_marked(struct nd_netlink *netlink, int family, uint32_t bits, uint32_t table) {
        struct fib_rule_hdr body = {.family = (uint8_t) family, .action = FR_ACT_TO_TBL};
        struct request r = request_new(RTM_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &body, sizeof body);
        uint32_t first = 1; /* the kernel's own rule for local addresses is 0 */
        int status = add_local_route(netlink, family, table);

        request_add(&r, FRA_PRIORITY, &first, sizeof first);
        request_add(&r, FRA_FWMARK, &bits, sizeof bits);
        request_add(&r, FRA_FWMASK, &bits, sizeof bits);
        request_add(&r, FRA_TABLE, &table, sizeof table);
        if (status == 0)
                status = transact(netlink, &r, nullptr, nullptr);
        if (status < 0 && status != -EEXIST)
                return nd_error_new(nd_error_code_of(-status), -status,
                                    "route marked packets of address family %d to this host", family);
        return nullptr;
}

/* ---- VXLAN ---- */

static size_t nest_begin(struct request *r, uint16_t type) {
        size_t at = NLMSG_ALIGN(r->header.nlmsg_len);

        request_add(r, type | NLA_F_NESTED, nullptr, 0);
        return at;
}

static void nest_end(struct request *r, size_t at) {
        uint16_t length;

        /* the last attribute's padding is part of the nest */
        r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len);
        length = (uint16_t) (r->header.nlmsg_len - at);
        memcpy(r->bytes + at + offsetof(struct rtattr, rta_len), &length, sizeof length);
}

static void add_vxlan(struct request *r, const struct nd_netlink_vxlan *vxlan) {
        struct ifla_vxlan_port_range range = {.low = htons(vxlan->source_ports), .high = htons(vxlan->source_last)};
        uint16_t port = htons(vxlan->port);
        size_t info = nest_begin(r, IFLA_LINKINFO), data;

        request_add(r, IFLA_INFO_KIND, "vxlan", strlen("vxlan"));
        data = nest_begin(r, IFLA_INFO_DATA);
        request_add(r, IFLA_VXLAN_ID, &vxlan->vni, sizeof vxlan->vni);
        request_add(r, IFLA_VXLAN_PORT, &port, sizeof port);
        request_add(r, IFLA_VXLAN_PORT_RANGE, &range, sizeof range);
        request_add(r, IFLA_VXLAN_LEARNING, &(uint8_t) {0}, sizeof(uint8_t));
        if (vxlan->family == AF_INET6) /* any address; only its family matters */
                request_add(r, IFLA_VXLAN_LOCAL6, &in6addr_any, sizeof in6addr_any);
        nest_end(r, data);
        nest_end(r, info);
}

struct nd_error *nd_netlink_vxlan_make(struct nd_netlink *netlink, const struct nd_netlink_vxlan *vxlan) {
        struct request r = request_new(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &(struct ifinfomsg) {},
                                       sizeof(struct ifinfomsg));
        int status;

        request_add(&r, IFLA_IFNAME, vxlan->name, strlen(vxlan->name) + 1);
        request_add(&r, IFLA_ADDRESS, vxlan->mac, sizeof vxlan->mac);
        add_vxlan(&r, vxlan);
        status = transact(netlink, &r, nullptr, nullptr);
        if (status == -EOPNOTSUPP)
                return nd_error_new(ND_UNIMPLEMENTED, -status, "this kernel has no VXLAN (as root: modprobe vxlan)");
        if (status < 0 && status != -EEXIST)
                return nd_error_new(nd_error_code_of(-status), -status, "create VXLAN device '%s'", vxlan->name);
        return nullptr;
}

struct nd_error *nd_netlink_link_remove(struct nd_netlink *netlink, unsigned link) {
        struct request r =
                request_new(RTM_DELLINK, NLM_F_ACK, &(struct ifinfomsg) {.ifi_index = (int) link}, sizeof(struct ifinfomsg));
        int status = transact(netlink, &r, nullptr, nullptr);

        if (status < 0 && status != -ENODEV)
                return nd_error_new(nd_error_code_of(-status), -status, "remove network interface %u", link);
        return nullptr;
}

static int change_neighbour(struct nd_netlink *netlink, uint16_t type, uint16_t flags, const struct nd_netlink_tunnel *t) {
        struct ndmsg body = {
                .ndm_family = (uint8_t) t->gateway.family, .ndm_ifindex = (int) t->link, .ndm_state = NUD_PERMANENT};
        struct request r = request_new(type, NLM_F_ACK | flags, &body, sizeof body);

        request_add(&r, NDA_DST, t->gateway.bytes, address_size(t->gateway.family));
        request_add(&r, NDA_LLADDR, t->mac, sizeof t->mac);
        return transact(netlink, &r, nullptr, nullptr);
}

static int change_destination(struct nd_netlink *netlink, uint16_t type, uint16_t flags, const struct nd_netlink_tunnel *t) {
        struct ndmsg body = {.ndm_family = AF_BRIDGE,
                             .ndm_ifindex = (int) t->link,
                             .ndm_state = NUD_PERMANENT | NUD_NOARP,
                             .ndm_flags = NTF_SELF};
        struct request r = request_new(type, NLM_F_ACK | flags, &body, sizeof body);
        uint16_t port = htons(t->port);

        request_add(&r, NDA_LLADDR, t->mac, sizeof t->mac);
        request_add(&r, NDA_DST, t->host.bytes, address_size(t->host.family));
        request_add(&r, NDA_PORT, &port, sizeof port);
        return transact(netlink, &r, nullptr, nullptr);
}

struct nd_error *nd_netlink_tunnel_replace(struct nd_netlink *netlink, const struct nd_netlink_tunnel *tunnel) {
        int status = change_destination(netlink, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, tunnel);
        char gateway[ND_ADDRESS_TEXT], host[ND_ADDRESS_TEXT];

        if (status == 0)
                status = change_neighbour(netlink, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, tunnel);
        if (status < 0)
                return nd_error_new(nd_error_code_of(-status), -status, "add tunnel to %s at host %s, port %u",
                                    nd_netlink_address_text(&tunnel->gateway, gateway),
                                    nd_netlink_address_text(&tunnel->host, host), tunnel->port);
        return nullptr;
}

struct nd_error *nd_netlink_tunnel_remove(struct nd_netlink *netlink, const struct nd_netlink_tunnel *tunnel) {
        int status = change_neighbour(netlink, RTM_DELNEIGH, 0, tunnel), other;
        char gateway[ND_ADDRESS_TEXT];

        other = change_destination(netlink, RTM_DELNEIGH, 0, tunnel);
        if (status == 0 || status == -ENOENT)
                status = other;
        if (status < 0 && status != -ENOENT)
                return nd_error_new(nd_error_code_of(-status), -status, "remove tunnel to %s",
                                    nd_netlink_address_text(&tunnel->gateway, gateway));
        return nullptr;
}

/* ---- taps ---- */

struct nd_error *nd_netlink_tap_make(const char *name) {
        struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
        nd_autoclose int fd = -EBADF;

        if (strlen(name) >= sizeof request.ifr_name)
                return nd_error_new(ND_INVALID, 0, "network interface name too long: '%s'", name);
        memcpy(request.ifr_name, name, strlen(name) + 1);
        if (if_nametoindex(name) > 0)
                return nullptr;
        fd = nd_sys->openat(AT_FDCWD, "/dev/net/tun", O_RDWR | O_CLOEXEC, 0);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno,
                                    "open /dev/net/tun (as root: modprobe tun; chmod 0666 /dev/net/tun)");
        if (ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETPERSIST, 1) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create tap device '%s'", name);
        return nullptr;
}

/* A word of /sys/class/net/NAME/FILE. */
static bool link_says(const char *name, const char *file, const char *word) {
        nd_autofree char *path = nd_format("/sys/class/net/%s/%s", name, file), *text = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, 64, &text);

        return !error && nd_has_prefix(text, word) && text[strlen(word)] == '\n';
}

bool nd_netlink_link_has_carrier(const char *name) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        nd_autoerror struct nd_error *error = nullptr;

        /* Not IFF_RUNNING: a new tap has it until the kernel notices that no process holds it open.
         * And until the kernel has noticed that a process opened it, packets are dropped. */
        if (!link_says(name, "carrier", "1") || link_says(name, "operstate", "down"))
                return false;
        /* The kernel publishes the state a moment before it opens the queue, both under a lock that
         * this request waits for. */
        error = nd_netlink_open(&netlink);
        if (!error)
                error = nd_netlink_link_up(&netlink, if_nametoindex(name), 0);
        return !error;
}
