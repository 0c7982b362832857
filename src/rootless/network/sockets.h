/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.h - sockets of the node's network for the forwarder, which runs outside and has no rights
 * over it
 *
 * Theory of operation
 *   The forwarder (forwarder.h) forwards connections from the host to the node. The server in the
 *   node must see the client's address, so the forwarder's socket in the node is bound to an
 *   address that is not the node's. That needs IP_TRANSPARENT and, for the replies, local delivery
 *   of packets with a foreign destination address:
 *     - the socket's packets carry SOCKET_BIT (SO_MARK); the node's table turns it into ROUTE_BIT
 *     of the connection mark
 *     - a reply of that connection, from a pod (prerouting) or from a server in the node's own
 *     network (output, rerouted), gets ROUTE_BIT as its packet mark, and a routing rule delivers
 *     packets with that mark locally
 *   The bits differ: with one bit for both, the forwarder's own packets would be delivered to
 *   itself. They do not overlap kube-proxy's (0x4000, 0x8000), portmap's (0x2000), Calico's
 *   (0xffff0000) and Cilium's (0x0f00).
 *   The output chain has type "route" since a UDP server has no connected socket that could inherit
 *   a mark: its reply is first routed to the tap, where it gets the right source address, and then,
 *   with the mark, to us. Tested for TCP and UDP, IPv4 and IPv6 in tests/kernel/foreign-source.c.
 *   Both options need CAP_NET_ADMIN over the node's network, so init creates the sockets and passes
 *   them out. */
#pragma once

#include "rootless/core/control.h"
#include "sys/netlink.h"

enum rootless_socket_kind {
        SOCKET_TCP4,
        SOCKET_TCP6,
        SOCKET_UDP4,
        SOCKET_UDP6,
        SOCKET_WATCH, /* readable when the node's addresses change */
        SOCKET_KINDS,
};
/* Packets of the forwarder's sockets have this mark, and no others. */
enum {
        SOCKETS_MARK = 0x40,
        SOCKETS_MARK_MASK = 0xc0,
};

const char *rootless_socket_kind_name(enum rootless_socket_kind kind);
[[nodiscard]] int rootless_socket_kind_parse(const char *name, enum rootless_socket_kind *ret);

/* ---- in the node ---- */

/* Installs the rules and routes that keep client addresses. Returns ND_UNIMPLEMENTED if the kernel
 * has no nf_tables: addresses are not kept then, but sockets work. */
[[nodiscard]] struct nd_error *rootless_sockets_prepare(void);

/* Creates one socket; kept is whether rootless_sockets_prepare() succeeded. */
[[nodiscard]] struct nd_error *rootless_socket_open(enum rootless_socket_kind kind, bool kept, int *ret_fd);

/* The reply to a request "sockets" with fields like "tcp4=16": the node's addresses, whether client
 * addresses are kept, and the sockets as descriptors, in the order of the fields "socket". */
struct rootless_sockets_response {
        int descriptors[CONTROL_DESCRIPTORS];
        size_t count;
};
void rootless_sockets_response_done(struct rootless_sockets_response *answer);
[[nodiscard]] struct nd_error *rootless_sockets_serve(const struct rootless_control *request, bool kept, struct nd_text *text,
                                                      struct rootless_sockets_response *ret);
