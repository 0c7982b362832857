/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/podsecurity.h"

#include <string.h>

void nd_podsecurity_details(const struct nd_podsecurity_findings *findings, struct nd_text *text) {
        for (size_t i = 0; i < findings->count; i++) {
                const struct nd_podsecurity_finding *f = &findings->items[i];

                nd_text_addf(text, "%s%s", i > 0 ? ", " : "", f->reason);
                if (f->detail[0] != '\0') {
                        nd_text_add(text, " (");
                        nd_text_add(text, f->detail);
                        nd_text_add(text, ")");
                }
        }
}

void nd_podsecurity_reasons(const struct nd_podsecurity_findings *findings, struct nd_text *text) {
        for (size_t i = 0; i < findings->count; i++)
                nd_text_addf(text, "%s%s", i > 0 ? ", " : "", findings->items[i].reason);
}

enum nd_podsecurity_level nd_podsecurity_level(const struct nd_pod *pod, struct nd_kube_version version,
                                               struct nd_arena *arena) {
        for (enum nd_podsecurity_level level = ND_LEVEL_RESTRICTED; level > ND_LEVEL_PRIVILEGED; level--) {
                struct nd_podsecurity_findings findings;

                nd_podsecurity_evaluate(&(struct nd_podsecurity_rule) {.level = level, .version = version}, pod, arena,
                                        &findings);
                if (findings.count == 0)
                        return level;
        }
        return ND_LEVEL_PRIVILEGED;
}

static const char *const level_names[] = {"privileged", "baseline", "restricted"};
static_assert(nd_count_of(level_names) == ND_LEVEL_RESTRICTED + 1);

const char *nd_podsecurity_level_name(enum nd_podsecurity_level level) {
        return level_names[level];
}

int nd_podsecurity_level_parse(const char *text, enum nd_podsecurity_level *ret) {
        for (size_t i = 0; i < nd_count_of(level_names); i++)
                if (nd_streq(text, level_names[i])) {
                        *ret = (enum nd_podsecurity_level) i;
                        return 0;
                }
        return -EINVAL;
}

/* One of the three modes while its two labels are read. */
struct mode {
        const char *name;
        /* An invalid level becomes this one: enforce fails closed, audit and warn fail open. */
        enum nd_podsecurity_level when_bad;
        struct nd_podsecurity_rule *rule;
        bool has_level;   /* the label exists */
        bool level_valid; /* and is valid */
        bool has_version;
};

static void read_mode(const struct nd_shape_pairs *labels, const char *prefix, struct mode *mode,
                      struct nd_field_errors *errors) {
        const char *level_key = nd_arena_format(errors->arena, "%s%s", prefix, mode->name);
        const char *version_key = nd_arena_format(errors->arena, "%s%s-version", prefix, mode->name);
        const char *level = nd_shape_pairs_get(labels, level_key), *version = nd_shape_pairs_get(labels, version_key);

        mode->has_level = level;
        mode->has_version = version;
        if (level && nd_podsecurity_level_parse(level, &mode->rule->level) < 0) {
                mode->rule->level = mode->when_bad;
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_text(errors->arena, level),
                             "must be one of privileged, baseline, restricted", "metadata.labels[%s]", level_key);
        } else {
                mode->level_valid = level;
        }
        if (version && nd_kube_version_parse(version, &mode->rule->version) < 0) {
                mode->rule->version = ND_POLICY_LATEST;
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_text(errors->arena, version), "must be \"latest\" or \"v1.x\"",
                             "metadata.labels[%s]", version_key);
        }
}

void nd_podsecurity_of_labels(const struct nd_shape_pairs *labels, const char *prefix,
                              const struct nd_podsecurity_policy *defaults, struct nd_podsecurity_policy *ret,
                              struct nd_field_errors *errors) {
        struct nd_podsecurity_policy policy = *defaults;
        struct mode enforce = {.name = "enforce", .when_bad = ND_LEVEL_RESTRICTED, .rule = &policy.enforce};
        struct mode audit = {.name = "audit", .rule = &policy.audit}, warn = {.name = "warn", .rule = &policy.warn};

        read_mode(labels, prefix, &enforce, errors);
        read_mode(labels, prefix, &audit, errors);
        read_mode(labels, prefix, &warn, errors);
        /* A namespace that enforces more than the default level of warnings also gets the
         * warnings. */
        if (!warn.has_level && enforce.level_valid && policy.enforce.level > policy.warn.level) {
                policy.warn.level = policy.enforce.level;
                if (!warn.has_version)
                        policy.warn.version = policy.enforce.version;
        }
        *ret = policy;
}
