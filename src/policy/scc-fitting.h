/* SPDX-License-Identifier: Apache-2.0 */
/* scc-fitting.h - one constraint tried on one pod: shared by scc-strategies.c, scc-profiles.c and
 * scc-volumes.c */
#pragma once

#include "policy/scc.h"

/* Constant while one constraint is tried. */
struct nd_scc_fitting {
        const struct nd_scc *scc;
        struct nd_pod *pod;
        struct nd_arena *arena;
        struct nd_field_errors *errors;
        uint32_t window; /* 0: the pod has the host's IDs */
};

/* The position of a context, formatted for errors only; without a list it is the pod's own
 * context. */
struct nd_scc_spot {
        const char *list;
        size_t number;
};

/* Adds an error about a field of the security context at the spot. */
void nd_scc_fitting_error(struct nd_scc_fitting *f, const struct nd_scc_spot *spot, const char *field,
                          enum nd_field_problem problem, const char *value, const char *detail);

/* Treats nullptr as "". */
static inline bool nd_scc_is(const char *text, const char *other) {
        return nd_streq(nd_kube_or_empty(text), nd_kube_or_empty(other));
}

/* A name against patterns; a trailing * matches any rest. */
bool nd_scc_matches_pattern(const struct nd_shape_texts *patterns, const char *name);

/* ---- profiles (scc-profiles.c) ---- */

void nd_scc_validate_selinux(struct nd_scc_fitting *f, const struct nd_pod_selinux *actual, const struct nd_scc_spot *spot);
void nd_scc_generate_seccomp(struct nd_scc_fitting *f, struct nd_pod_context *context);
void nd_scc_validate_seccomp(struct nd_scc_fitting *f, const struct nd_pod_profile *set, const struct nd_scc_spot *spot);
void nd_scc_validate_apparmor(struct nd_scc_fitting *f, const struct nd_pod_profile *profile, const struct nd_scc_spot *spot);
void nd_scc_validate_apparmor_annotations(struct nd_scc_fitting *f);
void nd_scc_validate_container_apparmor(struct nd_scc_fitting *f, const struct nd_pod_container *c,
                                        const struct nd_scc_spot *spot);

/* ---- volumes (scc-volumes.c) ---- */

bool nd_scc_allows_source(const struct nd_scc *scc, const struct nd_pod_volume *volume, enum nd_pod_volume_source source);
void nd_scc_validate_volumes(struct nd_scc_fitting *f);
