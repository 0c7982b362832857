/* SPDX-License-Identifier: Apache-2.0 */
/* init-start.h - starts a node's init, which keeps the node's namespaces alive */
#pragma once

#include <sys/types.h>

#include "rootless/network/netplan.h"
#include "rootless/node/bindplan.h"
#include "sys/userns.h"

struct rootless_init_plan {
        const char *name;
        const struct rootless_bindplan *binds;
        const struct rootless_netplan *network;
        const char *socket; /* where it listens */
        struct nd_userns_maps uids, gids;
        const char *cgroup; /* host path of the delegated cgroup that we are in; nullptr = none */
        /* we are root of our user namespace: we write the maps, not newuidmap */
        bool maps_own;
        bool die_with_us; /* the node ends with the calling process */
};

/* Returns when the node accepts requests. On an error nothing is left behind. */
[[nodiscard]] struct nd_error *rootless_init_start(const struct rootless_init_plan *plan, pid_t *ret_pid, int *ret_pidfd);
