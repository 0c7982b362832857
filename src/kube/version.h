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

/* Accepts any minor, as Kubernetes does; minors after the newest known one are equal to it. Returns
 * -EINVAL. */
[[nodiscard]] int nd_kube_version_parse(const char *text, struct nd_kube_version *ret);
[[nodiscard]] char *nd_kube_version_text(struct nd_kube_version version);

/* The version of a component: "v1.36.3", "1.29.8-20+15d27f9ba1c119". Pre-release and build are
 * ignored. */
struct nd_version {
        uint32_t major;
        uint32_t minor;
        uint32_t patch;
};

/* Three numbers with an optional 'v' in front; otherwise strict semantic versioning. Returns
 * -EINVAL. */
[[nodiscard]] int nd_version_parse(const char *text, struct nd_version *ret);
/* Returns a value below, at or above 0. */
int nd_version_compare(const struct nd_version *a, const struct nd_version *b);
