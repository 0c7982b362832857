/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - a pod's bandwidth limits, from Kubernetes' two annotations
 *
 * These are the only annotations that the daemon acts on. The pod's author sets them, so only
 * two numbers within bounds are passed on. */
#pragma once

#include "cri/core/request.h"

#define BANDWIDTH_INGRESS "kubernetes.io/ingress-bandwidth"
#define BANDWIDTH_EGRESS "kubernetes.io/egress-bandwidth"

/* Bits per second; 0 = unlimited. */
struct cri_bandwidth {
        uint64_t ingress, egress;
};

/* ND_INVALID unless the value is a quantity between 1k and 1P: a pod whose limit cannot be
 * applied must not run without one. */
[[nodiscard]] struct nd_error *cri_bandwidth_of(const struct cri_pairs *annotations, struct cri_bandwidth *ret);
