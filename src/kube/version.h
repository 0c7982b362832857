/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - versions of the pod security standards */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* A policy version: "latest" or "v1.N". */
struct nd_kube_version {
        uint64_t minor;
        bool latest;
};

enum {
        /* the newest minor whose policies were compared with Kubernetes' own
         * (tests/component/policy) */
        ND_POLICY_NEWEST = 37,
};

#define ND_POLICY_LATEST ((struct nd_kube_version) {.latest = true})

/* Accepts any minor, as Kubernetes does; minors after the newest known one are equal to it. Returns
 * -EINVAL. */
[[nodiscard]] int nd_kube_version_parse(const char *text, struct nd_kube_version *ret);
[[nodiscard]] char *nd_kube_version_text(struct nd_kube_version version);
