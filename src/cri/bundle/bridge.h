/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.h - volumes that cannot be idmapped, served by nodens-bridge
 *
 * One nodens-bridge per volume and pod: containers of a pod that share a volume share its caches,
 * too. Its filesystem is mounted in the pod's directory, under the volume's device and inode:
 *      <run>/pods/<sandbox>/bridges/<device>-<inode>/volume
 * Containers get clones of that mount. The processes are in the pod's cgroup, in
 * nodens-bridge/<device>-<inode>, so their memory and time are the pod's. They end when the last
 * mount is gone, and are killed when the pod is stopped. They do not depend on the daemon, which
 * replaces them when it starts after an upgrade of nodens-bridge.
 *
 * All functions but cri_bridge_count() are for workers in the host's mount namespace: the volume's
 * server may not respond. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;

/* Starts of nodens-bridge, in memory shared with the daemon: a worker may be killed at any time.
 * A start that was tried and is not in started has failed. */
struct cri_bridge_counts {
        uint32_t tried, started;
};

/* Mounts the volume of an O_PATH descriptor, unless that is done and a bridge serves it, and
 * returns a detached clone of the mount. @userns: the pod's. @counts: nullptr = not counted. */
[[nodiscard]] struct nd_error *cri_bridge_open(const struct cri_config *config, const struct cri_sandbox *sandbox, int userns,
                                               int file, struct cri_bridge_counts *counts, int *ret_tree);

enum cri_bridge_state {
        BRIDGE_SERVING,
        BRIDGE_DEAD,    /* all its processes are gone: the pod gets ENOTCONN */
        BRIDGE_UNKNOWN, /* it has no cgroup yet, or the node has none */
        BRIDGE_STATES,
};

/* Adds the bridges of a pod to their states. Does not touch the mounts: for the event loop. */
void cri_bridge_count(const struct cri_config *config, const struct cri_sandbox *sandbox, size_t counts[static BRIDGE_STATES]);

/* Replaces the processes of the pod's volumes where they run another file than the installed
 * nodens-bridge. After an error, which is that of the first volume, a volume has its old ones. */
[[nodiscard]] struct nd_error *cri_bridge_upgrade(const struct cri_config *config, const struct cri_sandbox *sandbox);

/* Ends all waits for the volumes of a pod, whose storage may not respond: users get errors. */
void cri_bridge_abort_all(const struct cri_config *config, const struct cri_sandbox *sandbox);

/* Unmounts all volumes of a pod and ends their processes. A pod may have none. */
[[nodiscard]] struct nd_error *cri_bridge_close_all(const struct cri_config *config, const struct cri_sandbox *sandbox);
