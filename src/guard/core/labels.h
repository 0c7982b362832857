/* SPDX-License-Identifier: Apache-2.0 */
/* labels.h - the labels of a namespace that select what constraints do there */
#pragma once

#include "kube/field.h"
#include "policy/scc.h"

#define GUARD_PREFIX "security.nodens.io/"
#define GUARD_LABEL_CONSTRAINTS GUARD_PREFIX "constraints"
/* "sync": the guard writes the labels of pod security */
#define GUARD_LABEL_SYNC GUARD_PREFIX "pod-security-labels"
#define GUARD_LABEL_USER_NAMESPACES GUARD_PREFIX "user-namespaces"

/* The label security.nodens.io/constraints of a namespace. */
enum guard_mode {
        GUARD_MODE_OFF,
        GUARD_MODE_WARN,
        GUARD_MODE_ENFORCE,
};

struct guard_labels {
        enum guard_mode mode;
        enum nd_scc_userns userns;
        /* what unknown values mean, for the log: "constraints are enforced"; nullptr: there is
         * none */
        const char *consequence;
};

/* Reads the labels. An unknown value is an error and means the strictest one, except for an empty
 * value of user-namespaces, which means none. */
void guard_labels_read(const struct nd_shape_pairs *labels, enum guard_mode default_mode, struct guard_labels *ret,
                       struct nd_field_errors *errors);
