/* SPDX-License-Identifier: Apache-2.0 */
/* audit-grants.c - which subjects may use which constraints, by RBAC and by the constraints' own
 * lists
 *
 * Roles come before bindings, so that a binding to a role without a rule about constraints is not
 * kept: most bindings are of this sort. */
#include <string.h>

#include "kube/rbac.h"
#include "policy/audit.h"

#define ACCOUNT "system:serviceaccount:"

struct role {
        struct nd_kube_metadata metadata;
        nd_list(struct nd_rbac_rule) rules;
};

struct binding {
        struct nd_kube_metadata metadata;
        struct nd_rbac_reference role;
        nd_list(struct nd_rbac_subject) subjects;
};

static const struct nd_shape_field role_fields[] = {
        ND_NESTED(role, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_NESTED(role, "rules", rules, LIST, nd_rbac_rule_shape),
        {},
};
static const struct nd_shape role_shape = ND_SHAPE_OF(role, role_fields);
static const struct nd_shape_field binding_fields[] = {
        ND_NESTED(binding, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_NESTED(binding, "roleRef", role, INLINE, nd_rbac_reference_shape),
        ND_NESTED(binding, "subjects", subjects, LIST, nd_rbac_subject_shape),
        {},
};
static const struct nd_shape binding_shape = ND_SHAPE_OF(binding, binding_fields);

/* ---- roles ---- */

static bool is_about_constraints(const struct nd_rbac_rule *rule) {
        return nd_rbac_has(&rule->verbs, "use") && nd_rbac_has(&rule->resources, "securitycontextconstraints") &&
               (nd_rbac_has(&rule->groups, "security.nodens.io") || nd_rbac_has(&rule->groups, "security.openshift.io"));
}

static bool is_everything(const struct nd_rbac_rule *rule) {
        return nd_shape_texts_have(&rule->verbs, "*") && nd_shape_texts_have(&rule->groups, "*") &&
               nd_shape_texts_have(&rule->resources, "*") && rule->names.count == 0;
}

static void add_names(struct nd_arena *arena, const struct nd_shape_texts *more, struct nd_shape_texts *names) {
        const char **items = nd_arena_alloc(arena, names->count + more->count, sizeof *items);

        for (size_t i = 0; i < names->count; i++)
                items[i] = names->items[i];
        for (size_t i = 0; i < more->count; i++)
                items[names->count + i] = nd_arena_strdup(arena, more->items[i]);
        names->items = items;
        names->count += more->count;
}

struct nd_error *nd_audit_put_role(struct nd_audit_cluster *cluster, enum nd_audit_kind kind, yyjson_val *object) {
        nd_autoarena struct nd_arena scratch = {};
        struct nd_audit_role sum = {}, *kept;
        nd_autofree char *key = nullptr;
        struct role role = {};

        nd_try(nd_shape_decode(&role_shape, object, &scratch, &role));
        nd_list_each(rule, &role.rules) {
                if (!is_about_constraints(rule))
                        continue;
                sum.any |= rule->names.count == 0;
                sum.everything |= is_everything(rule);
                add_names(cluster->arena, &rule->names, &sum.names);
        }
        if (!sum.any && sum.names.count == 0)
                return nullptr;
        kept = nd_arena_new(cluster->arena, struct nd_audit_role);
        *kept = sum;
        key = nd_format("%s/%s", kind == ND_AUDIT_ROLE ? nd_kube_or_empty(role.metadata.namespace) : "",
                        nd_kube_or_empty(role.metadata.name));
        (void) nd_map_put(&cluster->roles, key, kept);
        return nullptr;
}

/* ---- bindings ---- */

static char place_letter(const char *subject_kind) {
        return nd_streq(subject_kind, "Group") ? 'g' : 'u';
}

/* A service account is a user whose name says so. */
static char *place_of(const struct nd_audit_grant *grant) {
        return nd_format("%s/%c:%s%s", grant->namespace, place_letter(grant->subject_kind),
                         nd_streq(grant->subject_kind, "ServiceAccount") ? ACCOUNT : "", grant->subject);
}

static void add_grant(struct nd_audit_cluster *cluster, const struct nd_audit_grant *grant) {
        nd_autofree char *place = place_of(grant);
        struct nd_audit_grant *copy;

        if (cluster->grants.count >= ND_AUDIT_GRANTS) {
                cluster->grants_cut = true;
                return;
        }
        copy = nd_arena_new(cluster->arena, struct nd_audit_grant);
        *copy = *grant;
        copy->next = nd_map_get(&cluster->granted, place);
        (void) nd_map_put(&cluster->granted, place, copy);
        nd_vector_push(&cluster->grants, copy);
}

/* Returns nullptr for a kind that no request can have. */
static const char *subject_kind(const char *kind) {
        static const char *const kinds[] = {"User", "Group", "ServiceAccount"};

        for (size_t i = 0; kind && i < nd_count_of(kinds); i++)
                if (nd_streq(kind, kinds[i]))
                        return kinds[i];
        return nullptr;
}

static const char *subject_name(const struct nd_audit_cluster *cluster, const struct nd_rbac_subject *subject,
                                const char *namespace) {
        const char *name = nd_kube_or_empty(subject->name), *own = nd_kube_or_empty(subject->namespace);

        if (!nd_streq(nd_kube_or_empty(subject->kind), "ServiceAccount"))
                return nd_arena_strdup(cluster->arena, name);
        return nd_arena_format(cluster->arena, "%s:%s", *own ? own : namespace, name);
}

struct nd_error *nd_audit_put_binding(struct nd_audit_cluster *cluster, enum nd_audit_kind kind, yyjson_val *object) {
        struct nd_audit_grant grant = {.kind = nd_audit_resources[kind].kind};
        nd_autoarena struct nd_arena scratch = {};
        nd_autofree char *role = nullptr;
        struct binding binding = {};

        nd_try(nd_shape_decode(&binding_shape, object, &scratch, &binding));
        grant.namespace = kind == ND_AUDIT_ROLE_BINDING ? nd_kube_or_empty(binding.metadata.namespace) : "";
        grant.role_name = nd_kube_or_empty(binding.role.name);
        role = nd_format("%s/%s", nd_streq(nd_kube_or_empty(binding.role.kind), "ClusterRole") ? "" : grant.namespace,
                         grant.role_name);
        grant.role = nd_map_get(&cluster->roles, role);
        if (!grant.role)
                return nullptr;
        grant.namespace = nd_arena_strdup(cluster->arena, grant.namespace);
        grant.role_name = nd_arena_strdup(cluster->arena, grant.role_name);
        grant.name = nd_arena_strdup(cluster->arena, nd_kube_or_empty(binding.metadata.name));
        nd_list_each(subject, &binding.subjects) {
                grant.subject_kind = subject_kind(subject->kind);
                grant.subject = subject_name(cluster, subject, grant.namespace);
                if (grant.subject_kind)
                        add_grant(cluster, &grant);
        }
        return nullptr;
}

void nd_audit_put_subjects(struct nd_audit_cluster *cluster, const struct nd_scc *scc) {
        struct nd_audit_grant grant = {.kind = "SecurityContextConstraints",
                                       .namespace = "",
                                       .name = nd_kube_or_empty(scc->metadata.name),
                                       .role_name = "",
                                       .constraint = scc};

        grant.subject_kind = "User";
        for (size_t i = 0; i < scc->users.count; i++) {
                grant.subject = scc->users.items[i];
                add_grant(cluster, &grant);
        }
        grant.subject_kind = "Group";
        for (size_t i = 0; i < scc->groups.count; i++) {
                grant.subject = scc->groups.items[i];
                add_grant(cluster, &grant);
        }
}

/* ---- lookup ---- */

bool nd_audit_grant_covers(const struct nd_audit_grant *grant, const struct nd_scc *scc) {
        if (grant->constraint)
                return grant->constraint == scc;
        return grant->role->any || nd_shape_texts_have(&grant->role->names, nd_kube_or_empty(scc->metadata.name));
}

static bool is_granted(const struct nd_audit_cluster *cluster, const char *place, const struct nd_scc *scc) {
        for (const struct nd_audit_grant *grant = nd_map_get(&cluster->granted, place); grant; grant = grant->next)
                if (nd_audit_grant_covers(grant, scc))
                        return true;
        return false;
}

bool nd_audit_may_use(const struct nd_audit_cluster *cluster, const char *namespace, const char *account,
                      const struct nd_scc *scc) {
        const char *const scopes[] = {"", namespace};

        for (size_t i = 0; i < nd_count_of(scopes); i++) {
                nd_autofree char *user = nd_format("%s/u:" ACCOUNT "%s:%s", scopes[i], namespace, account);
                nd_autofree char *own = nd_format("%s/g:system:serviceaccounts:%s", scopes[i], namespace);
                nd_autofree char *accounts = nd_format("%s/g:system:serviceaccounts", scopes[i]);
                nd_autofree char *all = nd_format("%s/g:system:authenticated", scopes[i]);

                if (is_granted(cluster, user, scc) || is_granted(cluster, own, scc) || is_granted(cluster, accounts, scc) ||
                    is_granted(cluster, all, scc))
                        return true;
        }
        return false;
}
