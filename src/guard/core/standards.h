/* SPDX-License-Identifier: Apache-2.0 */
/* standards.h - settings of pod security: the prefix of its labels, the defaults and the exemptions
 *
 * Labels of a namespace set the level that is enforced, warned about and recorded for the audit,
 * each with the version of its rules. The prefix of the labels is nodens' own, or that of
 * Kubernetes' admission plugin if that plugin is switched off. */
#pragma once

#include "base/json.h"
#include "base/strings.h"
#include "policy/podsecurity.h"

#define GUARD_STANDARDS_PREFIX "pod-security.nodens.io/"

struct guard_standards {
        const char *prefix; /* of the labels; nullptr: switched off */
        struct nd_podsecurity_policy defaults;
        struct nd_strings users, namespaces, runtime_classes; /* exemptions */
};

void guard_standards_init(struct guard_standards *ret);
void guard_standards_done(struct guard_standards *standards);

/* Reads the value of the configuration's key podSecurity, which has the format of the plugin's own
 * configuration. */
[[nodiscard]] struct nd_error *guard_standards_read(struct guard_standards *standards, yyjson_val *value);

/* Whether all three levels are privileged: nothing is enforced, audited or warned about. */
bool guard_standards_are_privileged(const struct nd_podsecurity_policy *policy);
/* Returns false for "" and nullptr. */
bool guard_standards_exempt(const struct nd_strings *exempt, const char *name);
bool guard_standards_exempt_class(const struct guard_standards *standards, const char *runtime_class);
/* "restricted:v1.36" */
const char *guard_standards_rule(const struct nd_podsecurity_rule *rule, struct nd_arena *arena);
