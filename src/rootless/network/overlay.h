/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.h - the network of pods of several nodes, as one node has it: a VXLAN device, the tunnels
 * to its peers, and rules
 *
 * Theory of operation
 *   Frames to a peer leave by the VXLAN device, as UDP to the peer's host; the network helper
 *   carries them there. Frames of peers arrive at the published port, and the forwarder passes
 *   frames that its filter accepts (vxlan-filter.h).
 *   The device does not learn: each node's MAC address follows from its pods' network, so that the
 *   list of peers is enough. The next hop of a peer's pods is the first address of their network,
 *   which no pod has; it is also the address by which a node itself talks to pods of its peers.
 *   The device sends from few UDP ports, because each is a flow in the helper and in the peer's
 *   forwarder.
 *   Rules, without which pods could forge frames:
 *     - the node accepts datagrams for the VXLAN port only from the forwarder's sockets
 *     - no pod can send UDP out of the node to the port of a peer
 *     - packets that come from peers do not leave the node for other networks
 *   and a rule masquerades pods that talk to other networks, but not to peers. */
#pragma once

#include "rootless/core/control.h"
#include "rootless/network/peers.h"

/* A VXLAN network of its own, beside that of flannel (1). */
enum { OVERLAY_VNI = 28260 };

#define OVERLAY_DEVICE "nodens-vxlan"

struct rootless_overlay_tunnel {
        struct nd_netlink_address pods, host;
        uint16_t port;
};

struct rootless_overlay {
        uint32_t mtu;                   /* 0 = there is none */
        struct nd_netlink_address pods; /* of this node */
        int family;                     /* of the hosts' addresses */
        struct rootless_overlay_tunnel *items;
        size_t count;
        size_t capacity;
};
void rootless_overlay_done(struct rootless_overlay *overlay);

/* The overlay of a node. */
[[nodiscard]] struct rootless_overlay rootless_overlay_make(const struct rootless_peers *peers,
                                                            const struct rootless_peer *own, uint32_t mtu);

/* The MTU that fits into the packets of the host's link and of the node's. */
[[nodiscard]] struct nd_error *rootless_overlay_mtu(uint32_t link_mtu, uint32_t node_mtu, int family, uint32_t *ret);

/* The overlay as a message to init. */
void rootless_overlay_format(struct nd_text *text, const struct rootless_overlay *overlay);
[[nodiscard]] struct nd_error *rootless_overlay_parse(const struct rootless_control *message, struct rootless_overlay *ret);

/* In the node: makes the network as it should be, from what it was. */
[[nodiscard]] struct nd_error *rootless_overlay_apply(const struct rootless_overlay *before,
                                                      const struct rootless_overlay *overlay);
