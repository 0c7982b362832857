/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - cache of the cluster: constraints, namespaces, nodes, runtime classes, version floor
 *
 * Keeps only what reviews need. Filled by watches, or directly by tests, with objects as JSON
 * values. */
#pragma once

#include "guard/core/labels.h"
#include "net/api-table.h"
#include "policy/floor.h"
#include "policy/podsecurity.h"
#include "policy/scc.h"

struct guard_standards;

enum {
        GUARD_SYNCED_LABELS = 3, /* enforce, warn, audit */
};

/* Of a namespace that opts into labels of pod security by the guard. */
struct guard_synced {
        char *uid, *version;               /* of the object */
        char *levels[GUARD_SYNCED_LABELS]; /* the present labels; nullptr: none */
};

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
        /* nullptr: the namespace does not opt in */
        struct guard_synced *synced;
};

struct guard_constraint {
        struct nd_api_entry entry;
        struct nd_arena arena;
        struct nd_scc scc;
};

#define GUARD_CONDITION_BELOW GUARD_PREFIX "BelowVersionFloor" /* of a node */

enum {
        GUARD_NODE_POOL = 64, /* bytes of a label's value, with its end */
};

struct guard_node {
        struct nd_api_entry entry;
        /* as reported, cut at the length of a valid version, made printable; "": none yet */
        char version[ND_FLOOR_VERSION + 1];
        char pool[GUARD_NODE_POOL];
        bool is_ready;
        /* of the condition BelowVersionFloor: its status, and whether it exists */
        bool has_condition, is_marked;
        size_t count;
        /* with user namespaces, while it is schedulable; the strings are keys of the store's map */
        const char *handlers[];
};

struct guard_floor {
        struct nd_api_entry entry;
        struct nd_arena arena;
        struct nd_floor floor;
        bool is_broken; /* the object cannot be read, and floor has nothing */
};

struct guard_store {
        enum guard_mode default_mode;
        /* settings of the labels; nullptr: pod security is off */
        const struct guard_standards *standards;
        struct nd_api_table constraints; /* struct guard_constraint */
        struct nd_api_table namespaces;  /* struct guard_namespace */
        struct nd_map policies;          /* of pod security, by the text of their labels */
        struct nd_api_table nodes;       /* struct guard_node */
        struct nd_api_table floors;      /* struct guard_floor */
        /* label of nodes with the name of their pool, of the floor; nodes that were put before it
         * changed have the pool of the former one until they are listed again */
        char *pool_label;
        bool pool_label_is_new;
        struct nd_api_table runtime_classes;
        /* handler -> number of schedulable nodes that offer it with user namespaces */
        struct nd_map handlers;
        struct nd_arena set_arena;
        struct nd_scc_set set; /* of all constraints; valid unless set_is_old */
        bool set_is_old;
        uint64_t constraint_changes; /* incremented by each */
        void (*complain)(const char *kind, const char *name, const struct nd_error *error,
                         void *userdata); /* may be nullptr */
        void *userdata;
};

void guard_store_init(struct guard_store *store);
void guard_store_done(struct guard_store *store);

void guard_store_put_constraint(struct guard_store *store, yyjson_val *object);
void guard_store_put_namespace(struct guard_store *store, yyjson_val *object);
void guard_store_put_node(struct guard_store *store, yyjson_val *object);
void guard_store_put_floor(struct guard_store *store, yyjson_val *object);
void guard_store_put_runtime_class(struct guard_store *store, yyjson_val *object);

const struct nd_scc_set *guard_store_set(struct guard_store *store);
/* Returns nullptr for an unknown constraint. */
const struct nd_scc *guard_store_constraint(const struct guard_store *store, const char *name);
const struct guard_namespace *guard_store_namespace(const struct guard_store *store, const char *name);

/* Whether a schedulable node offers user namespaces to pods of this runtime class. */
bool guard_store_offers_user_namespaces(const struct guard_store *store, const char *runtime_class);

/* Returns the object that counts; nullptr: there is none. */
const struct guard_floor *guard_store_floor(const struct guard_store *store);
/* Returns the relaxations that are off by the floor in the store. */
uint32_t guard_store_gates_off(const struct guard_store *store);
const struct guard_node *guard_store_node(const struct guard_store *store, const char *name);
/* Whether an existing node must be locked: it is below the floor of existing nodes, or the floor
 * cannot be read. */
bool guard_store_is_below(const struct guard_store *store, const struct guard_node *node);
size_t guard_store_count_below(const struct guard_store *store);
bool guard_store_has_settled_floor(const struct guard_store *store);
