/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-scan.h - finds pods of a namespace that violate a level which is about to be enforced
 *
 * Input are pages of a list, output are warnings: one for all pods with the same violations, named
 * after the first of them. */
#pragma once

#include "base/map.h"
#include "guard/core/review.h"
#include "guard/core/standards.h"

enum {
        GUARD_SCAN_PODS = 3000, /* maximum */
};

struct guard_podsecurity_scan {
        const struct guard_standards *standards;
        struct nd_podsecurity_rule rule;
        struct nd_map violations; /* text -> pods */
        size_t checked, total;
};

void guard_podsecurity_scan_done(struct guard_podsecurity_scan *scan);
/* Adds an array of pods; nullptr: none. */
void guard_podsecurity_scan_add(struct guard_podsecurity_scan *scan, yyjson_val *pods);
/* Counts pods that were not checked. */
void guard_podsecurity_scan_skip(struct guard_podsecurity_scan *scan, size_t count);
void guard_podsecurity_scan_report(const struct guard_podsecurity_scan *scan, const char *namespace, struct nd_arena *arena,
                                   struct guard_response *response);
