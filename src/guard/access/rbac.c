/* SPDX-License-Identifier: Apache-2.0 */
/* rbac.c - see rbac.h
 *
 * Theory of operation
 *   A lookup has a subject, its groups and a namespace. @bound therefore indexes bindings by scope
 *   and subject: a lookup checks two places for each name of the subject, the namespace and the
 *   whole cluster. Each binding names its role, which is resolved at the time of the lookup, so a
 *   role may change under its bindings.
 * Invariant  every binding in @bindings is linked once under each of its subjects in @bound, and
 *            @bound contains nothing else. */
#include "guard/access/rbac.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "kube/rbac.h"
#include "net/api-objects.h"

enum {
        KEY_BYTES = 2048,
        SUBJECTS = 10000, /* of one binding */
};

#define RESOURCE "securitycontextconstraints"

struct wire_role {
        nd_list(struct nd_rbac_rule) rules;
};

struct wire_binding {
        struct nd_rbac_reference role;
        nd_list(struct nd_rbac_subject) subjects;
};

static const struct nd_shape_field role_fields[] = {ND_NESTED(wire_role, "rules", rules, LIST, nd_rbac_rule_shape), {}};
static const struct nd_shape role_shape = ND_SHAPE_OF(wire_role, role_fields);
static const struct nd_shape_field binding_fields[] = {
        ND_NESTED(wire_binding, "roleRef", role, INLINE, nd_rbac_reference_shape),
        ND_NESTED(wire_binding, "subjects", subjects, LIST, nd_rbac_subject_shape),
        {},
};
static const struct nd_shape binding_shape = ND_SHAPE_OF(wire_binding, binding_fields);

struct role {
        struct nd_api_entry entry;
        bool any; /* every constraint */
        nd_vector(char *) names;
};

/* One subject of a binding. The values of @bound are lists of these. */
struct link {
        struct binding *binding;
        struct link *next;
        const char *place; /* key owned by the map */
};

/* One allocation: there may be tens of thousands. */
struct binding {
        struct nd_api_entry entry;
        enum guard_scope role_scope;
        uint32_t count;
        char *role; /* its key, stored after the links */
        struct link links[];
};

/* "NAMESPACE/NAME", or "/NAME" without a namespace. Neither contains a slash. */
static char *key_of(yyjson_val *object, enum guard_scope scope) {
        return nd_format("%s/%s", scope == GUARD_SCOPE_CLUSTER ? "" : nd_api_namespace(object), nd_api_name(object));
}

static void drop_role(void *entry, void *userdata) {
        struct guard_rbac *rbac = userdata;
        struct role *role = entry;

        rbac->changes++;
        nd_vector_each (name, &role->names)
                free(*name);
        nd_vector_done(&role->names);
        free(role);
}

static void unbind(struct guard_rbac *rbac, struct link *link) {
        struct link *first = nd_map_get(&rbac->bound, link->place);

        if (first == link && !link->next) {
                (void) nd_map_remove(&rbac->bound, link->place);
                return;
        }
        if (first == link) {
                (void) nd_map_put(&rbac->bound, link->place, link->next);
                return;
        }
        for (; first; first = first->next)
                if (first->next == link) {
                        first->next = link->next;
                        return;
                }
}

static void bind_at(struct guard_rbac *rbac, const char *place, struct binding *binding) {
        struct link *link = &binding->links[binding->count];

        for (uint32_t i = 0; i < binding->count; i++)
                if (nd_streq(binding->links[i].place, place))
                        return; /* a subject that the binding lists twice */
        *link = (struct link) {.binding = binding, .next = nd_map_get(&rbac->bound, place)};
        (void) nd_map_put(&rbac->bound, place, link);
        link->place = nd_map_key(&rbac->bound, place);
        binding->count++;
}

static void drop_binding(void *entry, void *userdata) {
        struct guard_rbac *rbac = userdata;
        struct binding *binding = entry;

        rbac->changes++;
        for (uint32_t i = 0; i < binding->count; i++)
                unbind(rbac, &binding->links[i]);
        free(binding);
}

void guard_rbac_init(struct guard_rbac *rbac, const char *group) {
        *rbac = (struct guard_rbac) {.group = group};
        for (enum guard_scope scope = 0; scope < GUARD_SCOPES; scope++) {
                rbac->roles[scope] = (struct nd_api_table) {.drop = drop_role, .userdata = rbac};
                rbac->bindings[scope] = (struct nd_api_table) {.drop = drop_binding, .userdata = rbac};
        }
}

void guard_rbac_done(struct guard_rbac *rbac) {
        for (enum guard_scope scope = 0; scope < GUARD_SCOPES; scope++) {
                nd_api_table_done(&rbac->roles[scope]);
                nd_api_table_done(&rbac->bindings[scope]);
        }
        nd_map_done(&rbac->bound);
}

static void keep_rule(const struct guard_rbac *rbac, const struct nd_rbac_rule *rule, struct role *role) {
        if (!nd_rbac_has(&rule->verbs, "use") || !nd_rbac_has(&rule->groups, rbac->group) ||
            !nd_rbac_has(&rule->resources, RESOURCE))
                return;
        role->any |= rule->names.count == 0;
        for (size_t i = 0; i < rule->names.count; i++)
                nd_vector_push(&role->names, nd_strdup(rule->names.items[i]));
}

void guard_rbac_put_role(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object) {
        nd_autofree char *key = key_of(object, scope);
        struct wire_role wire = {};
        struct role *role;
        nd_autoarena struct nd_arena arena = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&role_shape, object, &arena, &wire);

        rbac->changes++;
        role = nd_new(struct role);
        if (!error)
                nd_list_each(rule, &wire.rules) keep_rule(rbac, rule, role);
        if (role->any || role->names.count > 0) {
                rbac->role_generation += !nd_map_has(&rbac->roles[scope].map, key);
                nd_api_table_put(&rbac->roles[scope], key, &role->entry);
                return;
        }
        nd_api_table_remove(&rbac->roles[scope], key);
        drop_role(role, rbac);
}

void guard_rbac_remove_role(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object) {
        nd_autofree char *key = key_of(object, scope);

        nd_api_table_remove(&rbac->roles[scope], key);
}

/* Returns the key of a subject's bindings; nullptr for a subject that no request can have. */
static char *place_of(const struct nd_rbac_subject *subject, const char *namespace) {
        const char *kind = nd_kube_or_empty(subject->kind), *name = nd_kube_or_empty(subject->name), *own;

        if (nd_streq(kind, "User"))
                return nd_format("%s/u:%s", namespace, name);
        if (nd_streq(kind, "Group"))
                return nd_format("%s/g:%s", namespace, name);
        own = nd_kube_or_empty(subject->namespace)[0] != '\0' ? subject->namespace : namespace;
        if (nd_streq(kind, "ServiceAccount") && *own)
                return nd_format("%s/u:system:serviceaccount:%s:%s", namespace, own, name);
        return nullptr;
}

void guard_rbac_put_binding(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object) {
        nd_autofree char *key = key_of(object, scope);
        const char *namespace = scope == GUARD_SCOPE_CLUSTER ? "" : nd_api_namespace(object);
        struct wire_binding wire = {};
        nd_autofree char *role = nullptr;
        enum guard_scope role_scope;
        struct binding *binding;
        nd_autoarena struct nd_arena arena = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&binding_shape, object, &arena, &wire);

        rbac->changes++;
        nd_api_table_remove(&rbac->bindings[scope], key);
        if (error || wire.subjects.count > SUBJECTS)
                return; /* without the binding the API server is queried */
        role_scope = nd_streq(nd_kube_or_empty(wire.role.kind), "ClusterRole") ? GUARD_SCOPE_CLUSTER : GUARD_SCOPE_NAMESPACE;
        role = nd_format("%s/%s", role_scope == GUARD_SCOPE_CLUSTER ? "" : namespace, nd_kube_or_empty(wire.role.name));
        if (!nd_map_has(&rbac->roles[role_scope].map, role))
                return; /* it grants nothing about constraints */
        binding = nd_calloc(1, sizeof *binding + wire.subjects.count * sizeof(struct link) + strlen(role) + 1);
        binding->role_scope = role_scope;
        binding->role = memcpy(&binding->links[wire.subjects.count], role, strlen(role) + 1);
        nd_list_each(subject, &wire.subjects) {
                nd_autofree char *place = place_of(subject, namespace);

                if (place)
                        bind_at(rbac, place, binding);
        }
        nd_api_table_put(&rbac->bindings[scope], key, &binding->entry);
}

void guard_rbac_remove_binding(struct guard_rbac *rbac, enum guard_scope scope, yyjson_val *object) {
        nd_autofree char *key = key_of(object, scope);

        nd_api_table_remove(&rbac->bindings[scope], key);
}

/* ---- lookup ---- */

static bool role_grants(const struct role *role, const char *constraint) {
        if (!role || role->any)
                return role != nullptr;
        nd_vector_each (name, &role->names)
                if (nd_streq(*name, constraint))
                        return true;
        return false;
}

static bool is_granted_at(const struct guard_rbac *rbac, const char *namespace, char kind, const char *name,
                          const char *constraint) {
        char place[KEY_BYTES];
        const struct link *link;

        if ((size_t) snprintf(place, sizeof place, "%s/%c:%s", namespace, kind, name) >= sizeof place)
                return false;
        for (link = nd_map_get(&rbac->bound, place); link; link = link->next)
                if (role_grants(nd_map_get(&rbac->roles[link->binding->role_scope].map, link->binding->role), constraint))
                        return true;
        return false;
}

bool guard_rbac_allows(const struct guard_rbac *rbac, const struct guard_subject *subject, const char *namespace,
                       const char *constraint) {
        const char *const scopes[] = {"", namespace};

        for (size_t i = 0; i < nd_count_of(scopes); i++) {
                if (is_granted_at(rbac, scopes[i], 'u', subject->name, constraint))
                        return true;
                for (size_t g = 0; g < subject->groups.count; g++)
                        if (is_granted_at(rbac, scopes[i], 'g', subject->groups.items[g], constraint))
                                return true;
        }
        return false;
}

bool guard_rbac_role_grants(const struct guard_rbac *rbac, const char *cluster_role, const char *constraint) {
        nd_autofree char *key = nd_format("/%s", cluster_role);

        return role_grants(nd_map_get(&rbac->roles[GUARD_SCOPE_CLUSTER].map, key), constraint);
}
