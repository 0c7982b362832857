/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/authorizer/authorizer.h"

#include "guard/admission/floor-admission.h"

#define AUTHORIZATION "authorization.k8s.io"

/* What a locked node needs to report a new version. */
static const struct rule {
        const char *verb;
        const char *group;
        const char *resource;
        const char *subresource;
        enum { OWN, OWN_OR_NONE, ANY } name;
} rules[] = {
        {"get", "", "nodes", "", OWN},
        /* the name is in the object; NodeRestriction compares it */
        {"create", "", "nodes", "", OWN_OR_NONE},
        {"update", "", "nodes", "", OWN},
        {"patch", "", "nodes", "status", OWN},
        {"create", AUTHORIZATION, "subjectaccessreviews", "", ANY},
};

static bool matches(const struct rule *rule, const struct guard_access_request *request, const char *node) {
        if (!nd_streq(rule->verb, request->verb) || !nd_streq(rule->group, request->group) ||
            !nd_streq(rule->resource, request->resource) || !nd_streq(rule->subresource, request->subresource))
                return false;
        return rule->name == ANY || nd_streq(request->name, node) || (rule->name == OWN_OR_NONE && *request->name == '\0');
}

static bool is_left(const struct guard_access_request *request, const char *node) {
        for (size_t i = 0; i < nd_count_of(rules); i++)
                if (matches(&rules[i], request, node))
                        return true;
        return false;
}

static const char *lock_of(const struct guard_store *store, bool current, const char *node, struct nd_arena *arena) {
        if (!current)
                return "the versions of nodes are not known: the authorizer has no contact with the API server yet";
        if (*node == '\0')
                return guard_floor_lock(store, "", arena) ? "a user of the group system:nodes must be named system:node:NAME"
                                                          : nullptr;
        return guard_floor_lock(store, node, arena);
}

const char *guard_authorizer_decide(const struct guard_store *store, bool current, const struct guard_access_request *request,
                                    struct nd_arena *arena) {
        const char *node = guard_floor_node_of(&request->user), *lock;

        if (!request->has_resource || !guard_floor_is_node(&request->user))
                return nullptr;
        lock = lock_of(store, current, node, arena);
        return lock && !(*node && is_left(request, node)) ? lock : nullptr;
}
