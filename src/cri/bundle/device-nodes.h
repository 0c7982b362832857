/* SPDX-License-Identifier: Apache-2.0 */
/* device-nodes.h - device nodes that belong to the users of a pod
 *
 * In a user namespace runc bind-mounts the host's nodes, whose owner does not exist in the pod.
 * crun makes nodes, but copies the host's mount table for it, and binds the host's node with the
 * name that the device has in the container if it fails. So we create a node for each device
 * that the kubelet or a CDI file names, as the host's root and with an owner of the pod, on a
 * tmpfs of the container, and the OCI runtime binds that one. Numbers and mode are those of the
 * host's node. The tmpfs is in the container's directory as long as volumes are
 * (volume-attachment.h).
 *
 * The pod's root may change owner and mode of these nodes; which devices can be used at all is
 * decided by the device rules of the cgroup. */
#pragma once

#include "cri/bundle/volume-attachment.h"
#include "oci/spec.h"

/* For workers: makes the nodes of all devices of the spec that are to have their own, and replaces
 * these devices by mounts. If there are any, the attachment must have begun. ND_INVALID if an owner
 * does not exist in the pod. */
[[nodiscard]] struct nd_error *cri_device_nodes_make(const struct cri_volume_attachment *attachment, struct nd_spec *spec);
