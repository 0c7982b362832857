/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - which devices a container sees and may use
 *
 * A container gets the OCI runtime's default devices (null, zero, tty and so on) and the
 * requested ones. A privileged one gets all devices of the node. */
#pragma once

#include "cri/core/request.h"
#include "oci/spec.h"

/* Fills the spec's devices and device rules. Opens paths on the host: for workers. */
[[nodiscard]] struct nd_error *cri_devices_describe(const struct cri_container_request *request, struct nd_spec *spec);
