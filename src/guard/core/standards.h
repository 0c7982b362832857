/* SPDX-License-Identifier: Apache-2.0 */
/* standards.h - pod security, as Kubernetes' own admission plugin does it
 *
 * Labels of a namespace say which level is enforced, warned about and noted for the audit, each with the version of its rules. The words of
 * labels, refusals, warnings and audit annotations are the plugin's; the prefix of the labels is ours, or the plugin's where it is
 * switched off. A pure function of a review and the store; what it needs besides is named and fetched by the caller. */
#pragma once

#include "base/json.h"
#include "base/vector.h"
#include "guard/core/review.h"
#include "guard/core/store.h"
#include "policy/podsecurity.h"

#define GUARD_STANDARDS_PREFIX "pod-security.nodens.io/"

typedef nd_vector(char *) guard_names;

struct guard_standards {
        const char *prefix; /* of the labels; nullptr: switched off */
        struct nd_podsecurity_policy defaults;
        guard_names users, namespaces, runtime_classes; /* that are exempt */
};

void guard_standards_init(struct guard_standards *ret);
void guard_standards_done(struct guard_standards *standards);

/* The value of the configuration's key podSecurity; its words are those of the plugin's own configuration. */
[[nodiscard]] struct nd_error *guard_standards_read(struct guard_standards *standards, yyjson_val *value);

bool guard_standards_are_privileged(const struct guard_standards *standards); /* by default nothing is asked of anybody */
bool guard_standards_exempt_class(const struct guard_standards *standards, const char *runtime_class);
const char *guard_standards_rule(const struct nd_podsecurity_rule *rule, struct nd_arena *arena); /* "restricted:v1.36" */

/* What is needed before a review can be answered. */
enum guard_podsecurity_need {
        GUARD_PODSECURITY_NEEDS_NOTHING,
        GUARD_PODSECURITY_NEEDS_NAMESPACE, /* in the store */
        GUARD_PODSECURITY_NEEDS_PODS,      /* of the namespace whose labels change: a census by the level that comes */
};
enum guard_podsecurity_need guard_podsecurity_needs(const struct guard_standards *standards, const struct guard_store *store,
                                                    const struct guard_review *review, struct nd_arena *arena,
                                                    struct nd_podsecurity_rule *ret_rule);

/* The answer, but for what a census would add to its warnings. */
void guard_podsecurity_decide(const struct guard_standards *standards, const struct guard_store *store,
                              const struct guard_review *review, struct nd_arena *arena, struct guard_response *ret);
