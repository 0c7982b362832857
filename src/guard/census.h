/* SPDX-License-Identifier: Apache-2.0 */
/* census.h - which pods of a namespace a level would refuse, for whoever is about to enforce it
 *
 * Pages of a list go in, warnings come out: one for all pods with the same faults, named by the first of them. */
#pragma once

#include "guard/standards.h"

enum {
        GUARD_CENSUS_PODS = 3000, /* that are looked at */
};

struct guard_census {
        const struct guard_standards *standards;
        struct nd_podsecurity_rule rule;
        struct nd_map faults; /* what is said -> who it is said of */
        size_t checked, total;
};

void guard_census_done(struct guard_census *census);
void guard_census_take(struct guard_census *census, yyjson_val *pods); /* an array of pods; nullptr: none */
void guard_census_left(struct guard_census *census, size_t count);     /* pods that were not seen */
void guard_census_tell(const struct guard_census *census, const char *namespace, struct nd_arena *arena,
                       struct guard_answer *answer);
