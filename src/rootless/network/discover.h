/* SPDX-License-Identifier: Apache-2.0 */
/* discover.h - the network plan that fits the machine as it is now */
#pragma once

#include "rootless/network/netplan.h"

/* What the machine's network gives the node now, and the text of its resolv.conf. */
[[nodiscard]] struct nd_error *rootless_network_discover(const char *name, enum rootless_net_driver driver, uint32_t mtu,
                                                         struct rootless_netplan *ret, char **ret_resolv);
