/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity.h - the pod security standards, in every policy version
 *
 * Verdict and text are those of Kubernetes' own admission plugin (tests/component/policy compares
 * them). From policy version 1.35 on three checks skip pods with hostUsers: false: such a pod may
 * run as root (restricted), and unmask /proc (baseline only). */
#pragma once

#include "base/text.h"
#include "kube/field.h"
#include "kube/pod.h"
#include "kube/version.h"

/* Laxest first. */
enum nd_podsecurity_level {
        ND_LEVEL_PRIVILEGED,
        ND_LEVEL_BASELINE,
        ND_LEVEL_RESTRICTED,
};

enum {
        /* the last minor in which a check changed; later ones and "latest" are equal to it */
        ND_PODSECURITY_NEWEST = 37,
        ND_PODSECURITY_CHECKS = 32, /* at least the number of checks */
        ND_PODSECURITY_TEXT = 1 << 20,
};

/* The violation of one check. */
struct nd_podsecurity_finding {
        const char *check;  /* its id: "runAsNonRoot" */
        const char *reason; /* "runAsNonRoot != true" */
        const char *detail; /* which containers, which values */
};

struct nd_podsecurity_findings {
        struct nd_podsecurity_finding items[ND_PODSECURITY_CHECKS];
        size_t count; /* 0 = allowed */
};

/* A level and the version of its rules. */
struct nd_podsecurity_rule {
        enum nd_podsecurity_level level;
        struct nd_kube_version version;
        /* judge pods with hostUsers: false as those without: nodes may ignore the field */
        bool ignores_user_namespaces;
};

void nd_podsecurity_evaluate(const struct nd_podsecurity_rule *rule, const struct nd_pod *pod, struct nd_arena *arena,
                             struct nd_podsecurity_findings *ret);

/* "reason (detail), reason (detail)", as in a denial; only the reasons, as in a warning about many
 * pods. */
void nd_podsecurity_details(const struct nd_podsecurity_findings *findings, struct nd_text *text);
void nd_podsecurity_reasons(const struct nd_podsecurity_findings *findings, struct nd_text *text);

/* The strictest level that a pod meets. */
enum nd_podsecurity_level nd_podsecurity_level(const struct nd_pod *pod, struct nd_kube_version version,
                                               struct nd_arena *arena);

const char *nd_podsecurity_level_name(enum nd_podsecurity_level level);
/* -EINVAL */
[[nodiscard]] int nd_podsecurity_level_parse(const char *text, enum nd_podsecurity_level *ret);

/* The policy that a namespace's labels set. */
struct nd_podsecurity_policy {
        struct nd_podsecurity_rule enforce;
        struct nd_podsecurity_rule audit;
        struct nd_podsecurity_rule warn;
};

#define ND_PODSECURITY_PREFIX "pod-security.kubernetes.io/"

/* Reads labels with a prefix, over defaults. There always is a policy: invalid labels enforce
 * restricted and warn about nothing, and an error reports them. */
void nd_podsecurity_of_labels(const struct nd_shape_pairs *labels, const char *prefix,
                              const struct nd_podsecurity_policy *defaults, struct nd_podsecurity_policy *ret,
                              struct nd_field_errors *errors);
