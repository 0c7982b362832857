/* SPDX-License-Identifier: Apache-2.0 */
/* census.h - which pods of a namespace a level would refuse, for whoever is about to enforce it
 *
 * Pages of a list go in, warnings come out: one for all pods with the same faults, named by the first of them. */
#pragma once

#include "guard/core/standards.h"

enum {
        GUARD_SCAN_PODS = 3000, /* that are looked at */
};

struct guard_podsecurity_scan {
        const struct guard_standards *standards;
        struct nd_podsecurity_rule rule;
        struct nd_map faults; /* what is said -> who it is said of */
        size_t checked, total;
};

void guard_podsecurity_scan_done(struct guard_podsecurity_scan *census);
void guard_podsecurity_scan_add(struct guard_podsecurity_scan *census, yyjson_val *pods); /* an array of pods; nullptr: none */
void guard_podsecurity_scan_skip(struct guard_podsecurity_scan *census, size_t count);    /* pods that were not seen */
void guard_podsecurity_scan_report(const struct guard_podsecurity_scan *census, const char *namespace, struct nd_arena *arena,
                                   struct guard_response *answer);
