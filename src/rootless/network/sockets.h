/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.h - sockets of the node's network for the forwarder outside, which has no power over it
 *
 * Theory of operation
 *   The forwarder (forwarder.h) carries connections from the machine to the node. The server in the node shall see the client's own address, so
 *   the forwarder's socket in the node is bound to an address that is not the node's. That takes IP_TRANSPARENT and, for the way
 *   back, packets that are delivered here though their address is elsewhere:
 *     - the socket's packets bear SOCKET_BIT (SO_MARK); the node's table turns it into ROUTE_BIT of their connection's mark
 *     - an answer of that connection, of a pod (prerouting) or of a server in the node's own network (output, routed anew), gets
 *       ROUTE_BIT as its own mark, and a routing rule delivers what bears it to this machine
 *   The bits differ: with one bit for both, the forwarder's own packets would be delivered to itself. They are outside of kube-proxy's
 *   (0x4000, 0x8000), portmap's (0x2000), Calico's (0xffff0000) and Cilium's (0x0f00).
 *   The output chain is of the type "route" since a UDP server has no connected socket which could inherit a mark: its answer is first
 *   routed to the tap, where it gets the right source address, and then, with the mark, to us. Tried for TCP and UDP, IPv4 and
 *   IPv6, see tests/kernel/foreign-source.c.
 *   Both options take CAP_NET_ADMIN over the node's network, so init makes the sockets and passes them out. */
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
const char *rootless_socket_kind_name(enum rootless_socket_kind kind);
[[nodiscard]] int rootless_socket_kind_parse(const char *name, enum rootless_socket_kind *ret);

/* ---- in the node ---- */

/* Rules and routes that keep clients' addresses. Without nf_tables in the kernel they cannot be kept, which is an error of the code
 * ND_UNIMPLEMENTED; sockets work without. */
[[nodiscard]] struct nd_error *rootless_sockets_prepare(void);

/* Makes one socket; kept as rootless_sockets_prepare() came out. */
[[nodiscard]] struct nd_error *rootless_socket_open(enum rootless_socket_kind kind, bool kept, int *ret_fd);

/* The answer to a request "sockets" with fields like "tcp4=16": the node's addresses, whether clients' addresses are kept, and the
 * sockets as descriptors, in the order of the fields "socket". */
struct rootless_sockets_response {
        int descriptors[CONTROL_DESCRIPTORS];
        size_t count;
};
void rootless_sockets_response_done(struct rootless_sockets_response *answer);
[[nodiscard]] struct nd_error *rootless_sockets_serve(const struct rootless_control *request, bool kept, struct nd_text *text,
                                                      struct rootless_sockets_response *ret);
