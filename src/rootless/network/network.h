/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the node's side of its network: runs in init, which owns tap, addresses and routes
 *
 * The helper only attaches to the tap. When it dies, all of this stays, and whatever stands on the tap (a VXLAN device) with it. */
#pragma once

#include "rootless/core/control.h"
#include "rootless/network/netplan.h"

/* lo, and the switches of the node's own network namespace that a node needs and nobody else has to set. */
[[nodiscard]] struct nd_error *rootless_network_prepare(void);

/* Makes the tap what the plan says, whatever it was before. */
[[nodiscard]] struct nd_error *rootless_network_apply(const struct rootless_netplan *plan);

/* The plan as a message, and back. */
void rootless_network_format(struct nd_text *text, const struct rootless_netplan *plan, const char *resolv);
[[nodiscard]] struct nd_error *rootless_network_parse(const struct rootless_control *message, struct rootless_netplan *ret);
