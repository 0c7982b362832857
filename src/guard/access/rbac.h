/* SPDX-License-Identifier: Apache-2.0 */
/* rbac.h - who may `use` which constraint, as far as RBAC says so
 *
 * An index over roles and bindings that says allowed or unknown. Only the API server can deny, as
 * it may have other authorizers. Of roles only those are kept that say something about constraints,
 * and of those only that; of bindings those to such roles, which in most clusters are few. So roles
 * must be listed first, and when one begins to grant something later, bindings must be listed
 * again: @role_generation counts that. */
#pragma once

#include "guard/core/review.h"
#include "guard/core/table.h"

enum guard_scope {
        GUARD_SCOPE_NAMESPACE, /* Role, RoleBinding */
        GUARD_SCOPE_CLUSTER,   /* ClusterRole, ClusterRoleBinding */
        GUARD_SCOPES,
};

struct guard_rbac {
        const char *group; /* API group of the constraints */
        struct guard_table roles[GUARD_SCOPES];
        struct guard_table bindings[GUARD_SCOPES];
        struct nd_map bound;      /* namespace of the binding and subject -> list of bindings, linked */
        uint64_t changes;         /* grows with whatever may have given a grant or taken one */
        uint64_t role_generation; /* grows with every role that grants something and did not before */
};

void guard_rbac_init(struct guard_rbac *rbac, const char *group);
void guard_rbac_done(struct guard_rbac *rbac);

void guard_rbac_put_role(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);
void guard_rbac_remove_role(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);
void guard_rbac_put_binding(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);
void guard_rbac_remove_binding(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);

/* Whether a role that grants `use` of this constraint is bound to the subject, in the namespace or
 * everywhere. */
bool guard_rbac_allows(const struct guard_rbac *rbac, const struct guard_subject *subject, const char *namespace,
                       const char *constraint);
