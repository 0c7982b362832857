/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities.h - which capabilities a container's process gets
 *
 * The default set is that of containerd, CRI-O and Docker. "ALL" in add or drop is applied
 * first, then the names: so "drop ALL, add NET_BIND_SERVICE" leaves one. Nothing is inheritable
 * or ambient unless requested (CVE-2022-24769). */
#pragma once

#include "cri/core/request.h"
#include "oci/spec.h"

/* ours is the daemon's own set: containers never get more, not even in a user namespace that
 * would allow it. */
[[nodiscard]] struct nd_error *cri_capabilities_choose(const struct cri_container_request *request, uint64_t ours,
                                                       struct nd_spec_capabilities *ret);

/* The daemon's capabilities: permitted and in the bounding set. */
uint64_t cri_capabilities_own(void);
