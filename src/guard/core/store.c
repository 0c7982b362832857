/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - see store.h
 *
 * A constraint that cannot be decoded is reported and not kept, and its former version is dropped
 * too: no pod is admitted by rules that are no longer in force. Other constraints are not
 * affected. */
#include "guard/core/store.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "guard/core/standards.h"
#include "net/api-objects.h"

enum {
        LABEL_TEXT = 1024,
};

/* ---- nodes and runtime classes as in the API ---- */

struct wire_features {
        bool user_namespaces;
};

struct wire_handler {
        const char *name;
        struct wire_features features;
};

struct wire_node_spec {
        bool unschedulable;
};

struct wire_node_info {
        const char *kubelet_version;
};

struct wire_condition {
        const char *type;
        const char *status;
};

struct wire_node_status {
        struct wire_node_info info;
        nd_list(struct wire_condition) conditions;
        nd_list(struct wire_handler) handlers;
};

struct wire_node {
        struct nd_kube_metadata metadata;
        struct wire_node_spec spec;
        struct wire_node_status status;
};

static const struct nd_shape_field features_fields[] = {ND_FIELD(wire_features, "userNamespaces", user_namespaces, BOOL), {}};
static const struct nd_shape features_shape = ND_SHAPE_OF(wire_features, features_fields);
static const struct nd_shape_field handler_fields[] = {
        ND_FIELD(wire_handler, "name", name, TEXT),
        ND_NESTED(wire_handler, "features", features, INLINE, features_shape),
        {},
};
static const struct nd_shape handler_shape = ND_SHAPE_OF(wire_handler, handler_fields);
static const struct nd_shape_field node_spec_fields[] = {ND_FIELD(wire_node_spec, "unschedulable", unschedulable, BOOL), {}};
static const struct nd_shape node_spec_shape = ND_SHAPE_OF(wire_node_spec, node_spec_fields);
static const struct nd_shape_field node_info_fields[] = {ND_FIELD(wire_node_info, "kubeletVersion", kubelet_version, TEXT),
                                                         {}};
static const struct nd_shape node_info_shape = ND_SHAPE_OF(wire_node_info, node_info_fields);
static const struct nd_shape_field condition_fields[] = {
        ND_FIELD(wire_condition, "type", type, TEXT),
        ND_FIELD(wire_condition, "status", status, TEXT),
        {},
};
static const struct nd_shape condition_shape = ND_SHAPE_OF(wire_condition, condition_fields);
static const struct nd_shape_field node_status_fields[] = {
        ND_NESTED(wire_node_status, "nodeInfo", info, INLINE, node_info_shape),
        ND_NESTED(wire_node_status, "conditions", conditions, LIST, condition_shape),
        ND_NESTED(wire_node_status, "runtimeHandlers", handlers, LIST, handler_shape),
        {},
};
static const struct nd_shape node_status_shape = ND_SHAPE_OF(wire_node_status, node_status_fields);
static const struct nd_shape_field node_fields[] = {
        ND_NESTED(wire_node, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_NESTED(wire_node, "spec", spec, INLINE, node_spec_shape),
        ND_NESTED(wire_node, "status", status, INLINE, node_status_shape),
        {},
};
static const struct nd_shape node_shape = ND_SHAPE_OF(wire_node, node_fields);

struct wire_class {
        struct nd_kube_metadata metadata;
        const char *handler;
};

static const struct nd_shape_field class_fields[] = {
        ND_NESTED(wire_class, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_FIELD(wire_class, "handler", handler, TEXT),
        {},
};
static const struct nd_shape class_shape = ND_SHAPE_OF(wire_class, class_fields);

/* A namespace: only the fields of every object. */
struct wire_named {
        struct nd_kube_metadata metadata;
};

static const struct nd_shape_field named_fields[] = {
        ND_NESTED(wire_named, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        {},
};
static const struct nd_shape named_shape = ND_SHAPE_OF(wire_named, named_fields);

/* ---- entries of the store ---- */

/* A policy of pod security, shared by all namespaces with the same labels. */
struct policy {
        struct nd_podsecurity_policy rules; /* must be first: namespaces point to it */
        const char *text;                   /* its key */
        size_t namespaces;
};

struct runtime_class {
        struct nd_api_entry entry;
        char *handler;
};

static void count_handler(struct guard_store *store, const char *handler, int change) {
        intptr_t count = (intptr_t) nd_map_get(&store->handlers, handler) + change;

        if (count > 0)
                (void) nd_map_put(&store->handlers, handler, (void *) count);
        else
                (void) nd_map_remove(&store->handlers, handler);
}

static void drop_constraint(void *entry, void *userdata) {
        struct guard_constraint *constraint = entry;
        struct guard_store *store = userdata;

        store->set_is_old = true;
        store->constraint_changes++;
        nd_arena_done(&constraint->arena);
        free(constraint);
}

static void drop_policy(struct guard_store *store, struct nd_podsecurity_policy *rules) {
        struct policy *policy = (struct policy *) rules;

        if (!policy || --policy->namespaces > 0)
                return;
        (void) nd_map_remove(&store->policies, policy->text);
        free(policy);
}

static void drop_synced(struct guard_synced *synced) {
        if (!synced)
                return;
        free(synced->uid);
        free(synced->version);
        for (size_t i = 0; i < GUARD_SYNCED_LABELS; i++)
                free(synced->levels[i]);
        free(synced);
}

static void drop_namespace(void *entry, void *userdata) {
        struct guard_namespace *namespace = entry;

        drop_policy(userdata, namespace->policy);
        if (namespace->supplemental_groups != namespace->uid_range)
                free(namespace->supplemental_groups);
        free(namespace->uid_range);
        free(namespace->mcs);
        free(namespace->version);
        free(namespace->policy_errors);
        free(namespace->label_errors);
        drop_synced(namespace->synced);
        free(namespace);
}

static void drop_node(void *entry, void *userdata) {
        struct guard_node *node = entry;

        for (size_t i = 0; i < node->count; i++)
                count_handler(userdata, node->handlers[i], -1);
        free(node);
}

static void drop_floor(void *entry, [[maybe_unused]] void *userdata) {
        struct guard_floor *floor = entry;

        nd_arena_done(&floor->arena);
        free(floor);
}

static void drop_class(void *entry, [[maybe_unused]] void *userdata) {
        struct runtime_class *class = entry;

        free(class->handler);
        free(class);
}

void guard_store_init(struct guard_store *store) {
        *store = (struct guard_store) {.default_mode = GUARD_MODE_WARN, .set_is_old = true};
        store->constraints = (struct nd_api_table) {.drop = drop_constraint, .userdata = store};
        store->namespaces = (struct nd_api_table) {.drop = drop_namespace, .userdata = store};
        store->nodes = (struct nd_api_table) {.drop = drop_node, .userdata = store};
        store->floors = (struct nd_api_table) {.drop = drop_floor, .userdata = store};
        store->runtime_classes = (struct nd_api_table) {.drop = drop_class, .userdata = store};
        store->pool_label = nd_strdup("");
}

void guard_store_done(struct guard_store *store) {
        nd_api_table_done(&store->constraints);
        nd_api_table_done(&store->namespaces);
        nd_map_done(&store->policies); /* empty: each policy was freed with its last namespace */
        nd_api_table_done(&store->nodes);
        nd_api_table_done(&store->floors);
        nd_api_table_done(&store->runtime_classes);
        free(nd_take_ptr(store->pool_label));
        nd_map_done(&store->handlers);
        nd_arena_done(&store->set_arena);
}

static void complain(struct guard_store *store, const char *kind, const char *name, const struct nd_error *error) {
        if (store->complain)
                store->complain(kind, name, error, store->userdata);
}

/* Returns why a constraint cannot be used. */
static struct nd_error *check_constraint(struct nd_scc *scc, struct nd_arena *arena) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena};
        nd_autotext struct nd_text text = ND_TEXT(4096);

        nd_scc_validate(scc, &errors);
        nd_field_errors_print(&errors, &text);
        return errors.items.count > 0 ? nd_error_new(ND_INVALID, 0, "%s", nd_text_get(&text)) : nullptr;
}

void guard_store_put_constraint(struct guard_store *store, yyjson_val *object) {
        struct guard_constraint *constraint;
        const char *name = nd_api_name(object);
        nd_autoarena struct nd_arena scratch = {};
        struct nd_scc tried = {};
        nd_autoerror struct nd_error *error = nd_scc_decode(object, &scratch, &tried);
        size_t bytes = nd_arena_used(&scratch);

        store->set_is_old = true;
        store->constraint_changes++;
        if (!error)
                error = check_constraint(&tried, &scratch);
        if (error) {
                complain(store, "SecurityContextConstraints", name, error);
                nd_api_table_remove(&store->constraints, name);
                return;
        }
        constraint = nd_new(struct guard_constraint);
        /* so that it allocates no more than it needs */
        nd_arena_reserve(&constraint->arena, bytes);
        /* it was decoded without an error above */
        nd_ignore(nd_scc_decode(object, &constraint->arena, &constraint->scc));
        nd_api_table_put(&store->constraints, name, &constraint->entry);
}

static char *copy(const char *text) {
        return text ? nd_strdup(text) : nullptr;
}

/* Logs unknown values once, not with every list. */
static void note_labels(const struct guard_store *store, const char *name, const char *errors, const char *consequence) {
        const struct guard_namespace *former = guard_store_namespace(store, name);

        if (former && former->label_errors && nd_streq(former->label_errors, errors))
                return;
        nd_log(ND_LOG_WARNING, "a label of a namespace has an unknown value: correct it", nd_field("namespace", name),
               nd_field("until_then", consequence), nd_field("reason", errors));
}

static void read_labels(const struct guard_store *store, const struct nd_kube_metadata *metadata, struct nd_arena *arena,
                        struct guard_namespace *namespace) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena};
        nd_autotext struct nd_text text = ND_TEXT(LABEL_TEXT);
        struct guard_labels read;

        guard_labels_read(&metadata->labels, store->default_mode, &read, &errors);
        namespace->mode = read.mode;
        namespace->userns = read.userns;
        if (errors.items.count == 0)
                return;
        nd_field_errors_print(&errors, &text);
        namespace->label_errors = nd_text_steal(&text);
        note_labels(store, nd_kube_or_empty(metadata->name), namespace->label_errors, read.consequence);
}

/* The labels of pod security as one text: namespaces with the same text share a policy. */
static char *policy_text(const struct nd_shape_pairs *labels, const char *prefix) {
        nd_autotext struct nd_text text = ND_TEXT(ND_PODSECURITY_TEXT);

        for (size_t i = 0; i < labels->count; i++)
                if (nd_has_prefix(labels->items[i].key, prefix))
                        nd_text_addf(&text, "%s=%s\n", labels->items[i].key, labels->items[i].value);
        return text.length > 0 ? nd_text_steal(&text) : nullptr;
}

/* Thousands of namespaces usually have a few distinct policies. */
static struct nd_podsecurity_policy *share_policy(struct guard_store *store, const char *text,
                                                  const struct nd_podsecurity_policy *policy) {
        struct policy *shared = nd_map_get(&store->policies, text);

        if (!shared) {
                shared = nd_new(struct policy);
                shared->rules = *policy;
                (void) nd_map_put(&store->policies, text, shared);
                shared->text = nd_map_key(&store->policies, text);
        }
        shared->namespaces++;
        return &shared->rules;
}

static bool has_label(const struct nd_shape_pairs *labels, const char *prefix, const char *name) {
        nd_autofree char *key = nd_format("%s%s", prefix, name);

        return nd_shape_pairs_get(labels, key) != nullptr;
}

/* Most namespaces have no labels of pod security, and no policy of their own. */
static void read_policy(struct guard_store *store, const struct nd_shape_pairs *labels, struct nd_arena *arena,
                        struct guard_namespace *namespace) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena};
        nd_autotext struct nd_text complaints = ND_TEXT(ND_PODSECURITY_TEXT);
        const struct guard_standards *standards = store->standards;
        nd_autofree char *text = standards && standards->prefix ? policy_text(labels, standards->prefix) : nullptr;
        struct nd_podsecurity_policy policy;

        if (!text)
                return;
        namespace->has_enforce_label = has_label(labels, standards->prefix, "enforce");
        nd_podsecurity_of_labels(labels, standards->prefix, &standards->defaults, &policy, &errors);
        nd_field_errors_print(&errors, &complaints);
        namespace->policy_errors = errors.items.count > 0 ? nd_text_steal(&complaints) : nullptr;
        namespace->policy = share_policy(store, text, &policy);
}

static struct guard_synced *read_synced(const struct nd_shape_pairs *labels, yyjson_val *object) {
        static const char *const keys[GUARD_SYNCED_LABELS] = {ND_PODSECURITY_PREFIX "enforce", ND_PODSECURITY_PREFIX "warn",
                                                              ND_PODSECURITY_PREFIX "audit"};
        const char *wish = nd_shape_pairs_get(labels, GUARD_LABEL_SYNC);
        const char *uid = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "uid"));
        struct guard_synced *synced;

        if (!wish || !nd_streq(wish, "sync") || !uid)
                return nullptr;
        synced = nd_new(struct guard_synced);
        synced->uid = nd_strdup(uid);
        synced->version = nd_strdup(nd_api_version(object));
        for (size_t i = 0; i < GUARD_SYNCED_LABELS; i++)
                synced->levels[i] = copy(nd_shape_pairs_get(labels, keys[i]));
        return synced;
}

void guard_store_put_namespace(struct guard_store *store, yyjson_val *object) {
        struct guard_namespace *namespace;
        struct nd_scc_namespace ranges;
        struct wire_named wire = {};
        nd_autoarena struct nd_arena arena = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&named_shape, object, &arena, &wire);

        if (error) {
                complain(store, "Namespace", nd_api_name(object), error);
                return;
        }
        ranges = nd_scc_namespace_of(&wire.metadata.annotations);
        namespace = nd_new(struct guard_namespace);
        read_labels(store, &wire.metadata, &arena, namespace);
        namespace->uid_range = copy(ranges.uid_range);
        namespace->supplemental_groups =
                ranges.uid_range && nd_streq(ranges.uid_range, nd_kube_or_empty(ranges.supplemental_groups))
                        ? namespace->uid_range
                        : copy(ranges.supplemental_groups);
        namespace->mcs = copy(ranges.mcs);
        namespace->version = ranges.uid_range ? nullptr : nd_strdup(nd_api_version(object));
        read_policy(store, &wire.metadata.labels, &arena, namespace);
        namespace->synced = read_synced(&wire.metadata.labels, object);
        nd_api_table_put(&store->namespaces, nd_kube_or_empty(wire.metadata.name), &namespace->entry);
}

/* Texts of a node are written by the node itself. */
static void copy_printable(char *target, size_t size, const char *text) {
        nd_autotext struct nd_text cut = ND_TEXT(size - 1);

        nd_text_add_printable(&cut, text, strlen(text));
        memcpy(target, nd_text_get(&cut), cut.length + 1);
}

/* A version that had to be changed for the copy is not valid, and neither is its copy. */
static void read_version(const char *reported, struct guard_node *node) {
        struct nd_floor_version parsed;

        copy_printable(node->version, sizeof node->version, reported);
        if (nd_floor_version_parse(reported, &parsed) < 0 && nd_floor_version_parse(node->version, &parsed) == 0)
                (void) snprintf(node->version, sizeof node->version, "unreadable");
}

static void read_conditions(const struct wire_node *wire, struct guard_node *node) {
        nd_list_each(one, &wire->status.conditions) {
                bool is_true = nd_streq(nd_kube_or_empty(one->status), "True");

                if (nd_streq(nd_kube_or_empty(one->type), "Ready")) {
                        node->is_ready = is_true;
                } else if (nd_streq(nd_kube_or_empty(one->type), GUARD_CONDITION_BELOW)) {
                        node->has_condition = true;
                        node->is_marked = is_true;
                }
        }
}

static void read_node(const struct guard_store *store, const struct wire_node *wire, struct guard_node *node) {
        const char *pool = *store->pool_label ? nd_shape_pairs_get(&wire->metadata.labels, store->pool_label) : nullptr;

        read_version(nd_kube_or_empty(wire->status.info.kubelet_version), node);
        copy_printable(node->pool, sizeof node->pool, nd_kube_or_empty(pool));
        read_conditions(wire, node);
}

void guard_store_put_node(struct guard_store *store, yyjson_val *object) {
        struct wire_node wire = {};
        nd_autoarena struct nd_arena arena = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&node_shape, object, &arena, &wire);
        struct guard_node *node;

        if (error) {
                complain(store, "Node", nd_api_name(object), error);
                return;
        }
        node = nd_calloc(1, sizeof *node + wire.status.handlers.count * sizeof *node->handlers);
        read_node(store, &wire, node);
        nd_list_each(handler, &wire.status.handlers) {
                if (wire.spec.unschedulable || !handler->features.user_namespaces)
                        continue;
                count_handler(store, nd_kube_or_empty(handler->name), 1);
                node->handlers[node->count++] = nd_map_key(&store->handlers, nd_kube_or_empty(handler->name));
        }
        nd_api_table_put(&store->nodes, nd_kube_or_empty(wire.metadata.name), &node->entry);
}

/* An object that cannot be read replaces a former one: it does not count as the lack of a floor. */
void guard_store_put_floor(struct guard_store *store, yyjson_val *object) {
        struct guard_floor *floor = nd_new(struct guard_floor);
        nd_autoerror struct nd_error *error = nd_floor_decode(object, &floor->arena, &floor->floor);

        if (error) {
                complain(store, "NodeVersionFloor", nd_api_name(object), error);
                floor->is_broken = true;
        } else if (nd_streq(nd_api_name(object), ND_FLOOR_NAME) && !nd_streq(store->pool_label, floor->floor.pool_label)) {
                nd_strset(&store->pool_label, floor->floor.pool_label);
                store->pool_label_is_new = true;
        }
        nd_api_table_put(&store->floors, nd_api_name(object), &floor->entry);
}

void guard_store_put_runtime_class(struct guard_store *store, yyjson_val *object) {
        struct wire_class wire = {};
        nd_autoarena struct nd_arena arena = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&class_shape, object, &arena, &wire);
        struct runtime_class *class;

        if (error) {
                complain(store, "RuntimeClass", nd_api_name(object), error);
                return;
        }
        class = nd_new(struct runtime_class);
        class->handler = nd_strdup(nd_kube_or_empty(wire.handler));
        nd_api_table_put(&store->runtime_classes, nd_kube_or_empty(wire.metadata.name), &class->entry);
}

const struct nd_scc_set *guard_store_set(struct guard_store *store) {
        nd_vector(const struct nd_scc *) all = {};
        const struct nd_map_slot *slot;

        if (!store->set_is_old)
                return &store->set;
        nd_arena_reset(&store->set_arena);
        for (size_t at = 0; (slot = nd_map_next(&store->constraints.map, &at));)
                nd_vector_push(&all, &((const struct guard_constraint *) slot->value)->scc);
        store->set = nd_scc_set_make(all.items, all.count, &store->set_arena);
        store->set_is_old = false;
        nd_vector_done(&all);
        return &store->set;
}

const struct nd_scc *guard_store_constraint(const struct guard_store *store, const char *name) {
        const struct guard_constraint *constraint = nd_map_get(&store->constraints.map, name);

        return constraint ? &constraint->scc : nullptr;
}

const struct guard_namespace *guard_store_namespace(const struct guard_store *store, const char *name) {
        return nd_map_get(&store->namespaces.map, name);
}

bool guard_store_offers_user_namespaces(const struct guard_store *store, const char *runtime_class) {
        const struct runtime_class *class = nullptr;

        if (nd_kube_or_empty(runtime_class)[0] != '\0') {
                class = nd_map_get(&store->runtime_classes.map, runtime_class);
                if (!class)
                        return false;
        }
        return nd_map_has(&store->handlers, class ? class->handler : "");
}

const struct guard_floor *guard_store_floor(const struct guard_store *store) {
        return nd_map_get(&store->floors.map, ND_FLOOR_NAME);
}

uint32_t guard_store_gates_off(const struct guard_store *store) {
        const struct guard_floor *floor = guard_store_floor(store);

        return nd_floor_gates_off(floor && !floor->is_broken ? &floor->floor : nullptr);
}

const struct guard_node *guard_store_node(const struct guard_store *store, const char *name) {
        return nd_map_get(&store->nodes.map, name);
}

bool guard_store_is_below(const struct guard_store *store, const struct guard_node *node) {
        const struct guard_floor *floor = guard_store_floor(store);

        if (!floor)
                return false;
        return floor->is_broken || !nd_floor_meets(nd_floor_of_existing(&floor->floor), node->version);
}

size_t guard_store_count_below(const struct guard_store *store) {
        const struct nd_map_slot *slot;
        size_t count = 0;

        for (size_t at = 0; (slot = nd_map_next(&store->nodes.map, &at));)
                count += guard_store_is_below(store, slot->value);
        return count;
}

bool guard_store_has_settled_floor(const struct guard_store *store) {
        const struct guard_floor *floor = guard_store_floor(store);

        return floor && !floor->is_broken && nd_floor_is_settled(&floor->floor);
}
