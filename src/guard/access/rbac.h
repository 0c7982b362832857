/* SPDX-License-Identifier: Apache-2.0 */
/* rbac.h - index of RBAC: which subjects may `use` which constraint
 *
 * The index answers allowed or unknown. Only the API server can deny, as it may have other
 * authorizers. Of roles the index keeps only rules about constraints, and of bindings only those to
 * roles with such rules, which are few in most clusters. So roles must be listed first, and when a
 * role begins to grant something later, bindings must be listed again: @role_generation counts
 * that. */
#pragma once

#include "guard/core/review.h"
#include "net/api-table.h"

enum guard_scope {
        GUARD_SCOPE_NAMESPACE, /* Role, RoleBinding */
        GUARD_SCOPE_CLUSTER,   /* ClusterRole, ClusterRoleBinding */
        GUARD_SCOPES,
};

struct guard_rbac {
        const char *group; /* API group of the constraints */
        struct nd_api_table roles[GUARD_SCOPES];
        struct nd_api_table bindings[GUARD_SCOPES];
        /* namespace of the binding and subject -> list of bindings, linked */
        struct nd_map bound;
        uint64_t changes;         /* incremented by every change that may add or remove a grant */
        uint64_t role_generation; /* incremented by every role that begins to grant something */
};

void guard_rbac_init(struct guard_rbac *rbac, const char *group);
void guard_rbac_done(struct guard_rbac *rbac);

void guard_rbac_put_role(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);
void guard_rbac_remove_role(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);
void guard_rbac_put_binding(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);
void guard_rbac_remove_binding(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object);

/* Whether a role that grants `use` of this constraint is bound to the subject, in the namespace or
 * cluster-wide. */
bool guard_rbac_allows(const struct guard_rbac *rbac, const struct guard_subject *subject, const char *namespace,
                       const char *constraint);

/* Whether a ClusterRole of this name exists and grants `use` of the constraint. */
bool guard_rbac_role_grants(const struct guard_rbac *rbac, const char *cluster_role, const char *constraint);
