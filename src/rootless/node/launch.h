/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - from settings to a living node */
#pragma once

#include "rootless/core/node.h"
#include "rootless/node/bindplan.h"
#include "rootless/node/settings.h"

/* What the machine's network gives the node now, and the text of its resolv.conf. */
[[nodiscard]] struct nd_error *nd_launch_network(const char *name, enum nd_net_driver driver, uint32_t mtu,
                                                 struct nd_netplan *ret, char **ret_resolv);

/* The bind plan as it would be. Makes the data directory unless dry. */
[[nodiscard]] struct nd_error *nd_launch_binds(struct nd_choice *choice, const struct nd_node *node, const char *resolv,
                                               bool dry, nd_bindplan *ret);

/* Starts the holder of a node whose lock we have, and records it. die_with_us: the node ends with the calling process. */
[[nodiscard]] struct nd_error *nd_launch(struct nd_choice *choice, const struct nd_node *node, bool die_with_us,
                                         struct nd_node_record *ret_record, int *ret_pidfd);
