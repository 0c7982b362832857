/* SPDX-License-Identifier: Apache-2.0 */
/* lxc-user-nic.h - a link on a bridge of the host, made by lxc-user-nic
 *
 * LXC's set-user-ID program creates a veth pair, attaches one end to a bridge and moves the other
 * to a network namespace of the caller, if /etc/lxc/lxc-usernet allows it. No helper copies
 * packets: the kernel forwards them at full speed. The administrator's line also names the bridge,
 * so nothing has to be chosen. The link lives as long as the namespace and needs no process. */
#pragma once

#include "rootless/network/netplan.h"

/* Finds the first bridge that a text like /etc/lxc/lxc-usernet allows ("USER veth BRIDGE COUNT", or
 * a group after an @). */
typedef bool (*rootless_lxc_match)(const char *who, void *userdata);
[[nodiscard]] bool rootless_lxc_usernet_parse(const char *text, rootless_lxc_match mine, void *userdata,
                                              char ret_bridge[NET_LINK_BYTES]);

/* Finds the bridge of the calling user and its MTU. An error says what the administrator has to
 * do. */
[[nodiscard]] struct nd_error *rootless_lxc_bridge_find(char ret_bridge[NET_LINK_BYTES], uint32_t *ret_mtu);

/* Makes the link of a node that has none. */
[[nodiscard]] struct nd_error *rootless_lxc_link_attach(const char *node, const struct rootless_netplan *plan, pid_t init_pid);
