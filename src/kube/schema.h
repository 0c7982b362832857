/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the field names of Kubernetes' workload objects, to find misspelled ones
 *
 * The table has all fields of the Kubernetes API 1.37 that a manifest of a pod or a workload
 * controller can have; what comes after a status, a map or a value that is encoded as text is not
 * checked. tests/component/policy/compare_fields.py compares it with the structs of k8s.io/api. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/vector.h"

enum {
        ND_SCHEMA_UNKNOWN = 20, /* unknown fields that are reported of one object */
};

struct nd_schema_unknown {
        yyjson_val *key;
        const char *path;       /* "spec.template.spec.container" */
        const char *type;       /* which lacks it: "PodSpec" */
        const char *suggestion; /* "containers", "securityContext.privileged"; "" = none */
};

struct nd_schema_unknowns {
        nd_vector(struct nd_schema_unknown) items;
};

/* Finds unknown fields in an object of a kind, in the order of the object. Returns their number;
 * only ND_SCHEMA_UNKNOWN of them are added to the list. An unknown kind has no unknown fields. */
size_t nd_schema_check(const char *kind, yyjson_val *object, struct nd_arena *arena, struct nd_schema_unknowns *ret);

/* Writes the table as {"PodSpec": {"containers": "Container", "nodeName": "", ...}, ...}. */
void nd_schema_print(struct nd_json_out *out);
