/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - pods and workload controllers */
#pragma once

#include "kube/pod.h"

struct nd_workload {
        const char *kind;      /* nullptr: the object is neither a pod nor a workload controller */
        const char *written;   /* the kind in the object, known or not; "" if it has none */
        const char *group;     /* of its apiVersion; "" if it has none */
        bool same_name;        /* not a workload, but its kind has the name of one */
        const char *name;      /* "" if it has none */
        const char *namespace; /* "" if it has none */
        const char *prefix;    /* of paths of the pod in the object: "spec.template." or "" */
        bool has_pod;          /* a controller may have no template */
        struct nd_pod pod;     /* of a controller: its template */
};

/* The pod of an object, or its template; nullptr if it has none or the kind is not a workload's. */
yyjson_val *nd_workload_template(const char *kind, yyjson_val *object);
[[nodiscard]] struct nd_error *nd_workload_decode(yyjson_val *object, struct nd_arena *arena, struct nd_workload *ret);
