/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - how fast a pod may send and receive, by the two annotations that Kubernetes has for it
 *
 * The only annotations that the daemon acts on. They are the pod author's, so nothing of them goes further than two numbers within bounds. */
#pragma once

#include "cri/core/request.h"

#define BANDWIDTH_INGRESS "kubernetes.io/ingress-bandwidth"
#define BANDWIDTH_EGRESS "kubernetes.io/egress-bandwidth"

/* Bits per second; 0 = as fast as it goes. */
struct cri_bandwidth {
        uint64_t ingress, egress;
};

/* ND_INVALID for what is no quantity between 1k and 1P: a pod whose limit cannot be kept must not run without one. */
[[nodiscard]] struct nd_error *cri_bandwidth_of(const struct cri_pairs *annotations, struct cri_bandwidth *ret);
