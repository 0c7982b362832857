/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - which devices a container sees and may use
 *
 * A container gets the OCI runtime's default devices (null, zero, tty and so on) and the
 * requested ones. A privileged one gets all devices of the node.
 * In a pod with a user namespace a requested device belongs to the user and the group of the
 * container's process. With the host's users it has the owner of the host's node or, if owned is
 * set, the request's user and group, as far as they are given and not 0. */
#pragma once

#include "cri/core/request.h"
#include "oci/spec.h"

/* Fills the spec's devices and device rules; the spec has the process's user. Opens paths on the
 * host: for workers. */
[[nodiscard]] struct nd_error *cri_devices_describe(const struct cri_container_request *request, bool owned,
                                                    struct nd_spec *spec);
