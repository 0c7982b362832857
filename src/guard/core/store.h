/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - what the guard knows of the cluster: constraints, namespaces, nodes, runtime classes
 *
 * Projected to what a review asks about. Filled by watches or, in tests, by hand: objects come as
 * JSON values. */
#pragma once

#include "guard/core/table.h"
#include "policy/podsecurity.h"
#include "policy/scc.h"

struct guard_standards;

#define GUARD_PREFIX "security.nodens.io/"
#define GUARD_LABEL_CONSTRAINTS GUARD_PREFIX "constraints"
#define GUARD_LABEL_USER_NAMESPACES GUARD_PREFIX "user-namespaces"

enum guard_mode { /* the label security.nodens.io/constraints of a namespace */
                  GUARD_MODE_OFF,
                  GUARD_MODE_WARN,
                  GUARD_MODE_ENFORCE,
};

struct guard_namespace {
        struct guard_entry entry;
        enum guard_mode mode;
        enum nd_scc_userns userns;
        char *uid_range, *supplemental_groups, *mcs; /* nullptr: not allocated; groups that are the users' are the same text */
        char *version;                               /* that this was read from; nullptr: of interest only without a range */
        struct nd_podsecurity_policy *policy;        /* of pod security, the store's; nullptr: its labels say nothing */
        char *policy_errors;                         /* labels of it that cannot be read; nullptr: none */
        bool has_enforce_label;                      /* of pod security */
};

struct guard_constraint {
        struct guard_entry entry;
        struct nd_arena arena;
        struct nd_scc scc;
};

struct guard_store {
        enum guard_mode default_mode;
        const struct guard_standards *standards; /* whose labels are read; nullptr: none */
        struct guard_table constraints;          /* struct guard_constraint */
        struct guard_table namespaces;           /* struct guard_namespace */
        struct nd_map policies;                  /* of pod security, by the labels that say so */
        struct guard_table nodes;
        struct guard_table runtime_classes;
        struct nd_map handlers; /* handler -> how many schedulable nodes offer it with user namespaces */
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
const struct nd_scc *guard_store_constraint(const struct guard_store *store, const char *name); /* nullptr: there is none */
const struct guard_namespace *guard_store_namespace(const struct guard_store *store, const char *name);

/* Whether a schedulable node offers user namespaces to pods of this runtime class. */
bool guard_store_offers_user_namespaces(const struct guard_store *store, const char *runtime_class);
