/* SPDX-License-Identifier: Apache-2.0 */
/* pod-volumes.h - volumes of one pod, which a rootless node gives to the pod's user namespace
 *
 * A rootless node cannot idmap filesystems that the host mounted, so not the kubelet's directory on
 * the host's disk. Files there that the kubelet made for one pod get the pod's IDs instead. Other
 * volumes (hostPath, local, CSI) never do: the container fails, with the reason. */
#pragma once

#include "base/error.h"
#include "sys/tree-copy.h"

/* Whether the kubelet made the file for the pod with this UID alone, by its path without links, of
 * the form <kubelet>/pods/<uid>/...: volumes of the types emptyDir, configMap, secret, projected
 * and downwardAPI, sub paths of these, /etc/hosts and the termination log. The kubelet's record of
 * the pod's user namespace, <kubelet>/pods/<uid>/userns, must exist. */
[[nodiscard]] bool cri_pod_volume_is_private(const char *path, const char *pod_uid);

/* For workers: shifts the owners of its files. file may be opened with O_PATH. */
[[nodiscard]] struct nd_error *cri_pod_volume_shift(const char *path, int file, const struct nd_tree_shift *shift);
