/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - objects that are pods or make pods */
#pragma once

#include "kube/pod.h"

struct nd_workload {
        const char *kind;      /* nullptr: the object is neither a pod nor makes any */
        const char *name;      /* "" where it has none */
        const char *namespace; /* the same */
        const char *prefix;    /* of the pod's paths in the object: "spec.template." or "" */
        bool has_pod;          /* a controller may be without a template */
        struct nd_pod pod;     /* of a controller: what its template says */
};

[[nodiscard]] struct nd_error *nd_workload_decode(yyjson_val *object, struct nd_arena *arena, struct nd_workload *ret);
