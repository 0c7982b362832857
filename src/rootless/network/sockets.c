/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/sockets.h"

#include <linux/netfilter.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "rootless/network/netplan.h"
#include "sys/nftables.h"

enum {
        SOCKET_BIT = SOCKETS_MARK,
        ROUTE_BIT = 0x80,
        BITS = SOCKETS_MARK_MASK,
        ROUTE_TABLE = 0x6e64,   /* "nd"; not a default of any program */
        PRIORITY_MANGLE = -150, /* after conntrack has found the connection, before NAT */
};

static_assert(BITS == (SOCKET_BIT | ROUTE_BIT));

#define TABLE "nodens-ports"

static const char *const names[] = {[SOCKET_TCP4] = "tcp4",
                                    [SOCKET_TCP6] = "tcp6",
                                    [SOCKET_UDP4] = "udp4",
                                    [SOCKET_UDP6] = "udp6",
                                    [SOCKET_WATCH] = "watch"};
static_assert(nd_count_of(names) == SOCKET_KINDS);

const char *rootless_socket_kind_name(enum rootless_socket_kind kind) {
        return names[kind];
}

int rootless_socket_kind_parse(const char *name, enum rootless_socket_kind *ret) {
        for (unsigned i = 0; i < SOCKET_KINDS; i++)
                if (nd_streq(name, names[i])) {
                        *ret = (enum rootless_socket_kind) i;
                        return 0;
                }
        return -EINVAL;
}

/* ---- rules ---- */

/* Packets of our sockets start connections whose replies must be delivered to us. */
#define REMEMBER                                                                                                              \
        {                                                                                                                     \
                {.kind = ND_NFT_LOAD_MARK}, {.kind = ND_NFT_MASK, .mask = BITS}, {.kind = ND_NFT_EQUAL, .value = SOCKET_BIT}, \
                        {.kind = ND_NFT_LOAD_CT_MARK},                                                                        \
                        {.kind = ND_NFT_MASK, .mask = ~(uint32_t) ROUTE_BIT, .value = ROUTE_BIT}, {                           \
                        .kind = ND_NFT_SET_CT_MARK                                                                            \
                }                                                                                                             \
        }
#define DELIVER                                                                                                               \
        {                                                                                                                     \
                {.kind = ND_NFT_LOAD_DIRECTION}, {.kind = ND_NFT_EQUAL, .value = 1}, {.kind = ND_NFT_LOAD_CT_MARK},           \
                        {.kind = ND_NFT_MASK, .mask = ROUTE_BIT}, {.kind = ND_NFT_EQUAL, .value = ROUTE_BIT},                 \
                        {.kind = ND_NFT_LOAD_MARK}, {.kind = ND_NFT_MASK, .mask = ~(uint32_t) ROUTE_BIT, .value = ROUTE_BIT}, \
                {                                                                                                             \
                        .kind = ND_NFT_SET_MARK                                                                               \
                }                                                                                                             \
        }

static const struct nd_nftables_chain chains[] = {
        {.name = "output",
         .type = "route",
         .hook = NF_INET_LOCAL_OUT,
         .priority = PRIORITY_MANGLE,
         .rules = {REMEMBER, DELIVER}},
        {.name = "prerouting", .type = "filter", .hook = NF_INET_PRE_ROUTING, .priority = PRIORITY_MANGLE, .rules = {DELIVER}},
        {},
};

struct nd_error *rootless_sockets_prepare(void) {
        static const int families[] = {AF_INET, AF_INET6};
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;

        nd_try(nd_nftables_put(TABLE, chains));
        nd_try(nd_netlink_open(&netlink));
        for (size_t i = 0; i < nd_count_of(families); i++)
                nd_try(nd_netlink_rule_deliver_marked(&netlink, families[i], ROUTE_BIT, ROUTE_TABLE));
        return nullptr;
}

/* ---- sockets ---- */

static int set_option(int fd, int level, int name, int value) {
        return setsockopt(fd, level, name, &value, sizeof value);
}

struct nd_error *rootless_socket_open(enum rootless_socket_kind kind, bool kept, int *ret_fd) {
        bool v6 = kind == SOCKET_TCP6 || kind == SOCKET_UDP6, stream = kind == SOCKET_TCP4 || kind == SOCKET_TCP6;
        nd_autoclose int fd = -EBADF;

        if (kind == SOCKET_WATCH)
                return nd_netlink_watch(ret_fd);
        fd = socket(v6 ? AF_INET6 : AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        /* Two clients' sockets may have the same address and port, with different servers. */
        if (fd < 0 || set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket");
        /* The client decides what is sent together; forwarded data must not wait for the
         * acknowledgement of earlier data. */
        if (stream && set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set TCP_NODELAY on a socket");
        if (kept &&
            (set_option(fd, SOL_SOCKET, SO_MARK, SOCKET_BIT) < 0 ||
             (v6 ? set_option(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, 1) : set_option(fd, IPPROTO_IP, IP_TRANSPARENT, 1)) < 0))
                return nd_error_new(nd_error_code_of(errno), errno, "set IP_TRANSPARENT and SO_MARK on a socket");
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* ---- the request ---- */

void rootless_sockets_response_done(struct rootless_sockets_response *answer) {
        for (size_t i = 0; i < answer->count; i++)
                nd_close_fd(&answer->descriptors[i]);
        answer->count = 0;
}

/* The node's external addresses: those of its tap. */
static struct nd_error *add_addresses(struct nd_text *text) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        struct nd_netlink_link_addresses list = {};
        unsigned link = if_nametoindex(NET_TAP);

        if (link == 0)
                return nullptr;
        nd_try(nd_netlink_open(&netlink));
        nd_try(nd_netlink_addresses(&netlink, &list));
        nd_vector_each (found, &list) {
                char address[ND_ADDRESS_TEXT];

                if (found->link == link && found->global)
                        rootless_control_add(text, "address", nd_netlink_address_text(&found->address, address));
        }
        nd_vector_done(&list);
        return nullptr;
}

static struct nd_error *make_some(enum rootless_socket_kind kind, uint64_t count, bool kept, struct nd_text *text,
                                  struct rootless_sockets_response *answer) {
        for (uint64_t i = 0; i < count && answer->count < CONTROL_DESCRIPTORS; i++) {
                nd_try(rootless_socket_open(kind, kept, &answer->descriptors[answer->count]));
                answer->count++;
                rootless_control_add(text, "socket", names[kind]);
        }
        return nullptr;
}

struct nd_error *rootless_sockets_serve(const struct rootless_control *request, bool kept, struct nd_text *text,
                                        struct rootless_sockets_response *ret) {
        nd_cleanup(rootless_sockets_response_done) struct rootless_sockets_response answer = {};

        rootless_control_add(text, "kept", kept ? "1" : "0");
        nd_try(add_addresses(text));
        nd_vector_each (field, &request->fields) {
                enum rootless_socket_kind kind;
                uint64_t count;

                if (rootless_socket_kind_parse(field->key, &kind) < 0)
                        continue;
                if (nd_text_parse_u64(field->value, CONTROL_DESCRIPTORS, &count) < 0)
                        return nd_error_new(ND_INVALID, 0,
                                            "invalid number of sockets '%s': zero or more than one reply can carry",
                                            field->value);
                nd_try(make_some(kind, count, kept, text, &answer));
        }
        *ret = nd_take(answer, (struct rootless_sockets_response) {});
        return nullptr;
}
