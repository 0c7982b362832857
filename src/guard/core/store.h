/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - cache of the cluster: constraints, namespaces, nodes, runtime classes
 *
 * Keeps only what reviews need. Filled by watches, or directly by tests, with objects as JSON
 * values. */
#pragma once

#include "guard/core/labels.h"
#include "net/api-table.h"
#include "policy/podsecurity.h"
#include "policy/scc.h"

struct guard_standards;

struct guard_namespace {
        struct nd_api_entry entry;
        enum guard_mode mode;
        enum nd_scc_userns userns;
        /* about unknown values of these two labels; nullptr: none */
        char *label_errors;
        /* nullptr: not allocated; supplemental_groups may point to the text of uid_range */
        char *uid_range, *supplemental_groups, *mcs;
        /* resourceVersion of the object; nullptr: only kept while there is no range */
        char *version;
        /* of pod security, owned by the store; nullptr: no labels */
        struct nd_podsecurity_policy *policy;
        /* about invalid labels of pod security; nullptr: none */
        char *policy_errors;
        bool has_enforce_label; /* for pod security */
};

struct guard_constraint {
        struct nd_api_entry entry;
        struct nd_arena arena;
        struct nd_scc scc;
};

struct guard_store {
        enum guard_mode default_mode;
        /* settings of the labels; nullptr: pod security is off */
        const struct guard_standards *standards;
        struct nd_api_table constraints; /* struct guard_constraint */
        struct nd_api_table namespaces;  /* struct guard_namespace */
        struct nd_map policies;          /* of pod security, by the text of their labels */
        struct nd_api_table nodes;
        struct nd_api_table runtime_classes;
        /* handler -> number of schedulable nodes that offer it with user namespaces */
        struct nd_map handlers;
        struct nd_arena set_arena;
        struct nd_scc_set set; /* of all constraints; valid unless set_is_old */
        bool set_is_old;
        void (*complain)(const char *kind, const char *name, const struct nd_error *error,
                         void *userdata); /* may be nullptr */
        void *userdata;
};

void guard_store_init(struct guard_store *store);
void guard_store_done(struct guard_store *store);

void guard_store_put_constraint(struct guard_store *store, yyjson_val *object);
void guard_store_put_namespace(struct guard_store *store, yyjson_val *object);
void guard_store_put_node(struct guard_store *store, yyjson_val *object);
void guard_store_put_runtime_class(struct guard_store *store, yyjson_val *object);

const struct nd_scc_set *guard_store_set(struct guard_store *store);
/* Returns nullptr for an unknown constraint. */
const struct nd_scc *guard_store_constraint(const struct guard_store *store, const char *name);
const struct guard_namespace *guard_store_namespace(const struct guard_store *store, const char *name);

/* Whether a schedulable node offers user namespaces to pods of this runtime class. */
bool guard_store_offers_user_namespaces(const struct guard_store *store, const char *runtime_class);
