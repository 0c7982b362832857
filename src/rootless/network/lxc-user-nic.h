/* SPDX-License-Identifier: Apache-2.0 */
/* lxc-user-nic.h - a link on one of the machine's bridges, by lxc-user-nic
 *
 * LXC's set-user-ID program makes a pair of links, puts one end on a bridge and the other into a network namespace of the caller, if
 * /etc/lxc/lxc-usernet says that the caller may. So there is no helper that copies packets: the kernel does it all, at its speed. The
 * administrator's line also says which bridge; nothing has to be chosen. The link lives as long as the namespace, without anybody. */
#pragma once

#include "rootless/network/netplan.h"

/* The first bridge that a text like /etc/lxc/lxc-usernet gives somebody ("USER veth BRIDGE COUNT", or a group after an @). */
typedef bool (*rootless_lxc_match)(const char *who, void *userdata);
[[nodiscard]] bool rootless_lxc_usernet_parse(const char *text, rootless_lxc_match mine, void *userdata,
                                              char ret_bridge[NET_LINK_BYTES]);

/* That of the calling user, with its MTU. An error says what the administrator has to do. */
[[nodiscard]] struct nd_error *rootless_lxc_bridge_find(char ret_bridge[NET_LINK_BYTES], uint32_t *ret_mtu);

/* Makes the link of a node that has none yet. */
[[nodiscard]] struct nd_error *rootless_lxc_link_attach(const char *node, const struct rootless_netplan *plan, pid_t init_pid);
