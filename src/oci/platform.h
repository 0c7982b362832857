/* SPDX-License-Identifier: Apache-2.0 */
/* platform.h - platforms, and the best match among the images of an index
 *
 * The rules are containerd's, so that a node selects the same image with either runtime: names are
 * normalised (x86_64 is amd64, arm64/v8 is arm64), and a host also accepts older variants of its
 * family, best first:
 *
 *      amd64/vN   amd64/vN, ... amd64/v2, amd64, then 386
 *      arm64/v9.x arm64/v9.x ... v9, then v8.(x+5) ... v8, then arm/v8 ... arm/v5
 *      arm64/v8.x arm64/v8.x ... v8, then arm/v8 ... arm/v5
 *      arm/vN     arm/vN ... arm/v5
 *      others     themselves only */
#pragma once

#include "base/error.h"

enum {
        ND_PLATFORM_FIELD = 32, /* maximum length of one field, with its terminator */
        ND_PLATFORM_TEXT = 3 * ND_PLATFORM_FIELD,
};

/* A plain value. */
struct nd_platform {
        char os[ND_PLATFORM_FIELD];
        char architecture[ND_PLATFORM_FIELD];
        char variant[ND_PLATFORM_FIELD];
        /* It requires operating system features; Linux has none, so it never matches. */
        bool features;
};

/* Makes a normalised platform; nullptr counts as "". A field that is too long or not plain text
 * cannot match: returns false, and the platform is unknown/unknown. */
bool nd_platform_make(const char *os, const char *architecture, const char *variant, struct nd_platform *ret);

/* Of the running kernel; on amd64 and arm64 without a variant. */
struct nd_platform nd_platform_host(void);

/* How well a candidate matches: 0 is best; -1 = not at all. Both normalised. */
[[nodiscard]] int nd_platform_rank(const struct nd_platform *wanted, const struct nd_platform *candidate);

/* "linux/arm64/v9". */
const char *nd_platform_text(const struct nd_platform *platform, char ret[static ND_PLATFORM_TEXT]);
