/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-admission.h - pod security, as Kubernetes' own admission plugin does it
 *
 * A pure function of a review, the settings and the store; the caller fetches what else is needed.
 * The texts of denials, warnings and audit annotations are the plugin's. */
#pragma once

#include "guard/core/review.h"
#include "guard/core/standards.h"
#include "guard/core/store.h"

/* What must be fetched before a review can be decided. */
enum guard_podsecurity_need {
        GUARD_PODSECURITY_NEEDS_NOTHING,
        GUARD_PODSECURITY_NEEDS_NAMESPACE, /* in the store */
        /* of the namespace whose labels change, for a scan with the new level */
        GUARD_PODSECURITY_NEEDS_PODS,
};
enum guard_podsecurity_need guard_podsecurity_needs(const struct guard_standards *standards, const struct guard_store *store,
                                                    const struct guard_review *review, struct nd_arena *arena,
                                                    struct nd_podsecurity_rule *ret_rule);

/* Returns the response without the warnings of a scan. */
void guard_podsecurity_decide(const struct guard_standards *standards, const struct guard_store *store,
                              const struct guard_review *review, struct nd_arena *arena, struct guard_response *ret);
