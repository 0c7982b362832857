/* SPDX-License-Identifier: Apache-2.0 */
/* discover.h - makes the network plan for the host's current configuration */
#pragma once

#include "rootless/network/netplan.h"

/* Makes the plan from the host's network and returns the text of the node's resolv.conf. */
[[nodiscard]] struct nd_error *rootless_network_discover(const char *name, enum rootless_net_driver driver, uint32_t mtu,
                                                         struct rootless_netplan *ret, char **ret_resolv);

/* The MTU of the host's link with the default route of a family; without one, of its link with an
 * address. */
[[nodiscard]] struct nd_error *rootless_network_link_mtu(int family, uint32_t *ret);
