/* SPDX-License-Identifier: Apache-2.0 */
/* overlay-plan.h - the place of a node in the list of --peers, and the MTU of its pods
 *
 * Computed once, when the node starts: pods keep the MTU and the network that they were given. The
 * record in the node's directory (overlay.json) tells the process that follows the list where it
 * is. */
#pragma once

#include "rootless/core/node.h"
#include "rootless/network/peers.h"
#include "rootless/node/settings.h"

struct rootless_overlay_plan {
        char *file;                     /* the list of nodes; nullptr = the node has no peers */
        char *name;                     /* of this node in it */
        char *pods_text;                /* "10.244.1.0/24" */
        struct nd_netlink_address pods; /* of this node */
        struct nd_netlink_address host;
        uint16_t port;   /* of the host, where VXLAN is published */
        size_t peers;    /* other nodes */
        uint32_t mtu;    /* of pods and of the VXLAN device */
        bool mtu_is_set; /* by the list; otherwise computed */
};
#define OVERLAY_RECORD "overlay.json"

void rootless_overlay_plan_done(struct rootless_overlay_plan *plan);

/* Finds the node's line and computes the MTU from the host's link. */
[[nodiscard]] struct nd_error *rootless_overlay_plan_make(const struct rootless_config *config, const char *name,
                                                          struct rootless_overlay_plan *ret);

/* From a list that was read, with the MTU of the host's link and of the node's. */
[[nodiscard]] struct nd_error *rootless_overlay_plan_choose(const struct rootless_peers *peers, const char *name,
                                                            uint32_t link_mtu, uint32_t node_mtu,
                                                            struct rootless_overlay_plan *ret);

[[nodiscard]] struct nd_error *rootless_overlay_plan_save(const struct rootless_node *node,
                                                          const struct rootless_overlay_plan *plan);
/* ND_NOT_FOUND if the node has no peers. */
[[nodiscard]] struct nd_error *rootless_overlay_plan_load(const struct rootless_node *node, struct rootless_overlay_plan *ret);

/* The list that is in force: the file may have changed since. */
#define OVERLAY_LIST "peers"
[[nodiscard]] struct nd_error *rootless_overlay_list_save(const struct rootless_node *node,
                                                          const struct rootless_peers *peers);
[[nodiscard]] struct nd_error *rootless_overlay_list_load(const struct rootless_node *node, struct rootless_peers *ret);
