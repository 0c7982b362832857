/* SPDX-License-Identifier: Apache-2.0 */
/* init-start.h - starts a node's init, which the node's namespaces live by */
#pragma once

#include <sys/types.h>

#include "rootless/network/netplan.h"
#include "rootless/node/bindplan.h"
#include "sys/userns.h"

struct rootless_init_plan {
        const char *name;
        const struct rootless_bindplan *binds;
        const struct rootless_netplan *network;
        const char *socket; /* where it shall listen */
        struct nd_userns_maps uids, gids;
        const char *cgroup; /* the delegated cgroup that we are in, as a path of the machine; nullptr = none */
        bool die_with_us;   /* the node ends with the calling process */
};

/* Returns when the node is ready to start things. On an error nothing is left. */
[[nodiscard]] struct nd_error *rootless_init_start(const struct rootless_init_plan *plan, pid_t *ret_pid, int *ret_pidfd);
