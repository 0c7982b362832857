/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities.h - which capabilities a container's process gets
 *
 * The default set is the field's (containerd, CRI-O, Docker). "ALL" among the additions or the drops is taken first, the names after it: so
 * "drop ALL, add NET_BIND_SERVICE" leaves one. Nothing is inheritable or ambient unless it was asked for (CVE-2022-24769). */
#pragma once

#include "cri/core/request.h"
#include "oci/spec.h"

/* ours is what the daemon itself has: it gives away no more than that, not even where a pod's own user namespace would have it. */
[[nodiscard]] struct nd_error *cri_capabilities_choose(const struct cri_container_request *request, uint64_t ours,
                                                       struct nd_spec_capabilities *ret);

/* The daemon's: permitted and in the bounding set. */
uint64_t cri_capabilities_own(void);
