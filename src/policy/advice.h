/* SPDX-License-Identifier: Apache-2.0 */
/* advice.h - the smallest change that lets a pod meet a level */
#pragma once

#include "policy/podsecurity.h"

struct nd_advice_edit {
        const char *path;  /* below the pod: "spec.hostUsers" */
        const char *value; /* as JSON; nullptr: remove the field */
        bool follows;      /* from another edit: the mount of a removed volume */
};

struct nd_advice {
        nd_vector(struct nd_advice_edit) edits;
        bool reached; /* with these edits the pod meets the level: it was evaluated again */
        bool user_namespace;
};

void nd_advice_done(struct nd_advice *advice);

/* The fields that make a pod violate one check: fields to remove or to change, and fields to set
 * that are missing. */
void nd_advice_fields(const struct nd_pod *pod, const struct nd_podsecurity_rule *rule, const char *check,
                      struct nd_arena *arena, struct nd_advice *ret);

/* Tries two candidates, with a user namespace and without one, and returns the one with fewer
 * edits. If both have as many, it prefers the user namespace, which keeps the user of the pod. A
 * pod that meets the level gets no edits. */
void nd_advice_find(const struct nd_pod *pod, const struct nd_podsecurity_rule *rule, bool host_network_gate,
                    struct nd_arena *arena, struct nd_advice *ret);
