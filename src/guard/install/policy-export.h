/* SPDX-License-Identifier: Apache-2.0 */
/* policy-export.h - the guard's rules as admission policies that API servers evaluate themselves
 *
 * For clusters without the guard, or beside it: ValidatingAdmissionPolicies for the default
 * constraints and for namespaces that require user namespaces, and a MutatingAdmissionPolicy that
 * sets hostUsers: false. A policy sees a pod as it is and fills in nothing else, so it refuses pods
 * that leave open what a constraint would fill in. */
#pragma once

#include "base/text.h"

struct guard_export_settings {
        const char *group;     /* API group of the constraints */
        const char *namespace; /* of the guard: left out, like kube-system */
        bool host_network;     /* the gate UserNamespacesHostNetworkSupport is on */
};

enum guard_export_part {
        GUARD_EXPORT_CONSTRAINTS,
        GUARD_EXPORT_USER_NAMESPACES,
        GUARD_EXPORT_PARTS,
};

extern const char *const guard_export_part_names[GUARD_EXPORT_PARTS];

/* Appends a stream of YAML documents in JSON syntax. */
void guard_export_write(enum guard_export_part part, const struct guard_export_settings *settings, struct nd_text *text);
