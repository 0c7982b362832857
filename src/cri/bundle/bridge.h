/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.h - volumes that cannot be idmapped, served by nodens-bridge
 *
 * One nodens-bridge per volume and pod: containers of a pod that share a volume share its caches,
 * too. Its filesystem is mounted in the pod's directory, under the volume's device and inode:
 *      <run>/pods/<sandbox>/bridges/<device>-<inode>/volume
 * Containers get clones of that mount. The processes are in the pod's cgroup, in nodens-bridge, so
 * their memory and time are the pod's. They end when the last mount is gone, and are killed when
 * the pod is stopped. They do not depend on the daemon.
 *
 * All functions are for workers in the host's mount namespace: the volume's server may not
 * respond. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;

/* Mounts the volume of an O_PATH descriptor, unless that is done, and returns a detached clone of
 * the mount. @userns: the pod's. */
[[nodiscard]] struct nd_error *cri_bridge_open(const struct cri_config *config, const struct cri_sandbox *sandbox, int userns,
                                               int file, int *ret_tree);

/* Unmounts all volumes of a pod and ends their processes. A pod may have none. */
[[nodiscard]] struct nd_error *cri_bridge_close_all(const struct cri_config *config, const struct cri_sandbox *sandbox);
