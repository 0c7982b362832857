/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - which devices a container sees and may use
 *
 * A container has what the OCI runtime gives everybody (null, zero, tty and their like) and what was asked for. A privileged one has all that the node has. */
#pragma once

#include "cri/core/request.h"
#include "oci/spec.h"

/* Fills the spec's devices and its rules about them. Looks at paths on the host: for workers. */
[[nodiscard]] struct nd_error *cri_devices_describe(const struct cri_container_request *request, struct nd_spec *spec);
