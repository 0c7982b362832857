/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-scan.h - which pods of a namespace violate a level that is about to be enforced
 *
 * Pages of a list go in, warnings come out: one for all pods with the same violations, named by the
 * first of them. */
#pragma once

#include "base/map.h"
#include "guard/core/review.h"
#include "guard/core/standards.h"

enum {
        GUARD_SCAN_PODS = 3000, /* that are looked at */
};

struct guard_podsecurity_scan {
        const struct guard_standards *standards;
        struct nd_podsecurity_rule rule;
        struct nd_map violations; /* text -> pods */
        size_t checked, total;
};

void guard_podsecurity_scan_done(struct guard_podsecurity_scan *scan);
void guard_podsecurity_scan_add(struct guard_podsecurity_scan *scan, yyjson_val *pods); /* an array of pods; nullptr: none */
void guard_podsecurity_scan_skip(struct guard_podsecurity_scan *scan, size_t count);    /* pods that were not seen */
void guard_podsecurity_scan_report(const struct guard_podsecurity_scan *scan, const char *namespace, struct nd_arena *arena,
                                   struct guard_response *response);
