/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the node's side of its network: runs in init, which owns tap, addresses and routes
 *
 * The helper only attaches to the tap. When it dies the tap stays, and devices on top of it (VXLAN)
 * too. */
#pragma once

#include "rootless/core/control.h"
#include "rootless/network/netplan.h"

/* Configures lo and the sysctls of the node's network namespace that a node needs. */
[[nodiscard]] struct nd_error *rootless_network_prepare(void);

/* Configures the tap as in the plan, from any previous state. */
[[nodiscard]] struct nd_error *rootless_network_apply(const struct rootless_netplan *plan);

/* Formats the plan as a message, and parses it. */
void rootless_network_format(struct nd_text *text, const struct rootless_netplan *plan, const char *resolv);
[[nodiscard]] struct nd_error *rootless_network_parse(const struct rootless_control *message, struct rootless_netplan *ret);
