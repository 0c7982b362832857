/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - versions of Kubernetes and of its policies */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* A policy version: "latest" or "v1.N". */
struct nd_kube_version {
        uint64_t minor;
        bool latest;
};

#define ND_POLICY_LATEST ((struct nd_kube_version) {.latest = true})

/* Like Kubernetes it takes any minor, of which those beyond the newest known mean the newest. Returns -EINVAL. */
[[nodiscard]] int nd_kube_version_parse(const char *text, struct nd_kube_version *ret);
[[nodiscard]] char *nd_kube_version_text(struct nd_kube_version version);

/* A version of a component: "v1.36.3", "1.29.8-20+15d27f9ba1c119". Pre-release and build do not count. */
struct nd_version {
        uint32_t major;
        uint32_t minor;
        uint32_t patch;
};

/* Three numbers, a 'v' in front if need be; strict semantic versioning apart from that. Returns -EINVAL. */
[[nodiscard]] int nd_version_parse(const char *text, struct nd_version *ret);
int nd_version_compare(const struct nd_version *a, const struct nd_version *b); /* below, at or above 0 */
