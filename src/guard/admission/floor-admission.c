/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admission/floor-admission.h"

#include <string.h>

enum {
        NODES_NAMED = 10, /* in a refusal */
        REFUSAL_BYTES = 4096,
};

#define BROKEN "the version floor cannot be read: correct NodeVersionFloor " ND_FLOOR_NAME
#define NODE_PREFIX "system:node:"
#define NODE_GROUP "system:nodes"

/* ---- nodes ---- */

bool guard_floor_is_node(const struct guard_subject *user) {
        return nd_shape_texts_have(&user->groups, NODE_GROUP);
}

const char *guard_floor_node_of(const struct guard_subject *user) {
        return guard_floor_is_node(user) && nd_has_prefix(user->name, NODE_PREFIX) ? user->name + strlen(NODE_PREFIX) : "";
}

const char *guard_floor_lock(const struct guard_store *store, const char *name, struct nd_arena *arena) {
        const struct guard_node *node = guard_store_node(store, name);
        const struct guard_floor *floor = guard_store_floor(store);

        if (!floor)
                return nullptr;
        if (floor->is_broken)
                return BROKEN;
        if (!nd_floor_version_is_set(nd_floor_of_joining(&floor->floor)))
                return nullptr;
        if (!node)
                return nd_arena_format(arena, "node %s has not reported its kubelet's version", nd_field_text(arena, name));
        if (!guard_store_is_below(store, node))
                return nullptr;
        return nd_arena_format(arena, "kubelet version %s of node %s is below the minimum %s: upgrade it",
                               nd_field_text(arena, node->version), nd_field_text(arena, name),
                               nd_floor_version_text(nd_floor_of_existing(&floor->floor), arena));
}

/* A kubelet registers at each start, and expects a conflict if its Node exists. A refusal would
 * keep it from reporting its version, so that an older one would not be found: existing nodes are
 * judged by their reports. */
static void decide_join(const struct guard_store *store, const struct guard_review *review, struct nd_arena *arena,
                        struct guard_response *response) {
        const struct guard_floor *floor = guard_store_floor(store);
        const char *version = nd_kube_or_empty(review->kubelet_version);
        const struct nd_floor_version *minimum;
        struct nd_floor_version parsed;

        if (!floor || !guard_floor_is_node(&review->user) || guard_store_node(store, guard_floor_node_of(&review->user)))
                return;
        if (floor->is_broken) {
                guard_response_deny(response, 403, "Forbidden", BROKEN);
                return;
        }
        minimum = nd_floor_of_joining(&floor->floor);
        if (!nd_floor_version_is_set(minimum) || nd_floor_meets(minimum, version))
                return;
        guard_response_deny(response, 403, "Forbidden",
                            nd_arena_format(arena,
                                            "kubelet version %s is below the minimum %s of NodeVersionFloor " ND_FLOOR_NAME
                                            ": upgrade it",
                                            nd_floor_version_parse(version, &parsed) < 0 ? "(none, or not readable)" : version,
                                            nd_floor_version_text(minimum, arena)));
}

/* ---- the floor ---- */

struct below {
        const char *name;
        const char *version;
};

static int by_name(const void *a, const void *b) {
        return strcmp(((const struct below *) a)->name, ((const struct below *) b)->name);
}

/* Returns the existing nodes below a minimum, "a (v1.29.6), b (v1.28.0) and 3 more"; nullptr:
 * there are none. */
static const char *nodes_below(const struct guard_store *store, const struct nd_floor_version *minimum,
                               struct nd_arena *arena) {
        nd_autotext struct nd_text text = ND_TEXT(REFUSAL_BYTES);
        nd_vector(struct below) all = {};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&store->nodes.map, &at));) {
                const struct guard_node *node = slot->value;

                if (!nd_floor_meets(minimum, node->version))
                        nd_vector_push(&all, ((struct below) {.name = slot->key, .version = node->version}));
        }
        if (all.count > 0)
                qsort(all.items, all.count, sizeof *all.items, by_name);
        for (size_t i = 0; i < all.count && i < NODES_NAMED; i++)
                nd_text_addf(&text, "%s%s (%s)", i > 0 ? ", " : "", all.items[i].name,
                             *all.items[i].version ? all.items[i].version : "no version");
        if (all.count > NODES_NAMED)
                nd_text_addf(&text, " and %zu more", all.count - NODES_NAMED);
        nd_vector_done(&all);
        return text.length > 0 ? nd_arena_strdup(arena, nd_text_get(&text)) : nullptr;
}

static void decide_write(const struct guard_store *store, const struct guard_review *review, struct nd_arena *arena,
                         struct guard_response *response) {
        const struct nd_floor *floor = review->floor, *old = review->old_floor;
        const char *nodes;

        if (!nd_streq(review->name, ND_FLOOR_NAME)) {
                guard_response_deny(response, 422, "Invalid",
                                    "metadata.name: the only version floor that counts is named '" ND_FLOOR_NAME "'");
                return;
        }
        if (!floor) {
                guard_response_deny(response, 400, "BadRequest", "the object is not a NodeVersionFloor");
                return;
        }
        if (old && nd_floor_version_compare(&floor->spec, &old->spec) <= 0)
                return; /* not raised */
        nodes = nodes_below(store, &floor->spec, arena);
        if (nodes)
                guard_response_deny(
                        response, 403, "Forbidden",
                        nd_arena_format(
                                arena,
                                "spec.minimumKubeletVersion: %s is above the kubelets of these nodes: %s; upgrade them "
                                "or remove them first",
                                nd_floor_version_text(&floor->spec, arena), nodes));
}

/* Deleting ends the guarantee at once, so pods must not rely on it any more. */
static void decide_delete(const struct guard_review *review, struct guard_response *response) {
        const struct nd_floor *old = review->old_floor;

        if (old && (nd_floor_version_is_set(&old->spec) || nd_floor_version_is_set(&old->status)))
                guard_response_deny(response, 403, "Forbidden",
                                    "the version floor is in use: set spec.minimumKubeletVersion to \"\" and wait until the "
                                    "status has none either, then delete it");
}

/* ---- certificate signing requests ---- */

static void decide_request(const struct guard_store *store, const struct guard_review *review, struct nd_arena *arena,
                           struct guard_response *response) {
        const char *lock;

        if (!guard_floor_is_node(&review->user))
                return;
        lock = guard_floor_lock(store, guard_floor_node_of(&review->user), arena);
        if (lock)
                guard_response_deny(response, 403, "Forbidden",
                                    nd_arena_format(arena, "the node is locked and gets no certificate: %s", lock));
}

void guard_floor_decide(const struct guard_store *store, const struct guard_review *review, struct nd_arena *arena,
                        struct guard_response *ret) {
        *ret = (struct guard_response) {.allowed = true};
        if (*review->subresource)
                return;
        if (nd_streq(review->resource, "certificatesigningrequests") && review->operation == GUARD_CREATE)
                decide_request(store, review, arena, ret);
        else if (nd_streq(review->resource, "nodes") && review->operation == GUARD_CREATE)
                decide_join(store, review, arena, ret);
        else if (nd_streq(review->resource, "nodeversionfloors") && review->operation == GUARD_DELETE)
                decide_delete(review, ret);
        else if (nd_streq(review->resource, "nodeversionfloors"))
                decide_write(store, review, arena, ret);
}
