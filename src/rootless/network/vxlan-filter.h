/* SPDX-License-Identifier: Apache-2.0 */
/* vxlan-filter.h - which datagrams of a published VXLAN port reach the node
 *
 * VXLAN has no authentication: the kernel accepts every frame of its network identifier. The
 * forwarder accepts a datagram only if its sender is the host of a peer, and if the packet in the
 * frame is from a pod of a node of that host to a pod of this node. So a host that is not a peer
 * reaches nothing, and a peer cannot send as the pods of another.
 *
 *      text    "VNI POD-NETWORK HOST=POD-NETWORK,..." */
#pragma once

#include "base/text.h"
#include "rootless/network/peers.h"

enum { VXLAN_FILTER_BYTES = 64 * 1024 };

/* A peer's host, and the pods of one of its nodes. */
struct rootless_vxlan_source {
        struct nd_netlink_address host, pods;
};

struct rootless_vxlan_filter {
        uint32_t vni;
        struct nd_netlink_address pods;        /* of this node */
        struct rootless_vxlan_source *sources; /* sorted by host */
        size_t count;
};

void rootless_vxlan_filter_free(struct rootless_vxlan_filter *filter);

/* The text for a node: all others are its peers. */
[[nodiscard]] char *rootless_vxlan_filter_format(const struct rootless_peers *peers, const struct rootless_peer *own,
                                                 uint32_t vni);
[[nodiscard]] struct nd_error *rootless_vxlan_filter_parse(const char *text, struct rootless_vxlan_filter **ret);

/* Whether the datagram of this host is accepted. */
[[nodiscard]] bool rootless_vxlan_filter_accepts(const struct rootless_vxlan_filter *filter,
                                                 const struct nd_netlink_address *host, const void *bytes, size_t length);
