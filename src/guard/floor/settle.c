/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/floor/settle.h"

enum {
        POOLS = 1000, /* more are not told apart, and wait */
};

static const char *node_below(const struct guard_store *store, const struct nd_floor *floor, struct nd_arena *arena) {
        const char *first = nullptr, *version = "";
        const struct nd_map_slot *slot;
        size_t count = 0;

        for (size_t at = 0; (slot = nd_map_next(&store->nodes.map, &at));) {
                const struct guard_node *node = slot->value;

                if (nd_floor_meets(&floor->spec, node->version))
                        continue;
                count++;
                if (!first || strcmp(slot->key, first) < 0) {
                        first = slot->key;
                        version = node->version;
                }
        }
        return first ? nd_arena_format(arena, "%zu nodes are below it, among them %s (%s)", count, first,
                                       *version ? version : "no version")
                     : nullptr;
}

/* The value of a pool in the map is its first Ready node that meets the floor, or nullptr. */
static const char *silent_pool(const struct guard_store *store, const struct nd_floor *floor, struct nd_arena *arena) {
        const struct nd_map_slot *slot;
        struct nd_map pools = {};
        const char *found = nullptr;

        for (size_t at = 0; (slot = nd_map_next(&store->nodes.map, &at));) {
                const struct guard_node *node = slot->value;
                bool reports = node->is_ready && nd_floor_meets(&floor->spec, node->version);

                if (pools.count < POOLS && (reports || !nd_map_has(&pools, node->pool)))
                        (void) nd_map_put(&pools, node->pool, reports ? slot->key : nullptr);
        }
        for (size_t at = 0; !found && (slot = nd_map_next(&pools, &at));)
                if (!slot->value)
                        found = nd_arena_format(arena, "no Ready node of pool '%s' has reported a version that meets it",
                                                slot->key);
        if (pools.count >= POOLS)
                found = "there are too many pools";
        nd_map_done(&pools);
        return found;
}

const char *guard_settle_obstacle(const struct guard_store *store, const struct nd_floor *floor, struct nd_arena *arena) {
        bool raised = nd_floor_version_compare(&floor->spec, &floor->status) > 0;
        const char *below = raised ? node_below(store, floor, arena) : nullptr;

        return below ? below : silent_pool(store, floor, arena);
}

static void write_gates(const struct nd_floor *floor, uint32_t off, struct nd_arena *arena, struct nd_json_out *out) {
        nd_json_open(out, "featureGates", '[');
        for (enum nd_floor_gate gate = 0; gate < ND_FLOOR_GATES; gate++) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "name", nd_floor_gate_name(gate));
                nd_json_string(out, "requiredMinimumVersion", nd_floor_version_text(&floor->required[gate], arena));
                nd_json_bool(out, "enabled", !(off & ND_FLOOR_BIT(gate)));
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void write_condition(const char *waits, struct nd_json_out *out) {
        nd_json_open(out, "conditions", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "type", "Settled");
        nd_json_string(out, "status", waits ? "False" : "True");
        nd_json_string(out, "reason", waits ? "Waiting" : "Settled");
        nd_json_string(out, "message", nd_kube_or_empty(waits));
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

/* The gates as they are with the status that the patch makes. */
static struct nd_floor after(const struct nd_floor *floor, const char *waits) {
        struct nd_floor next = *floor;

        if (!waits)
                next.status = floor->spec;
        return next;
}

void guard_settle_patch(const struct nd_floor *floor, const char *waits, struct nd_arena *arena, struct nd_text *text) {
        struct nd_floor next = after(floor, waits);
        struct nd_json_out out = {.text = text};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "resourceVersion", floor->resource_version);
        nd_json_close(&out, '}');
        nd_json_open(&out, "status", '{');
        if (!waits) {
                nd_json_string(&out, "minimumKubeletVersion", nd_floor_version_text(&floor->spec, arena));
                nd_json_signed(&out, "observedGeneration", floor->generation);
        }
        nd_json_string(&out, "effectiveMinimumKubeletVersion", nd_floor_version_text(nd_floor_of_relaxations(&next), arena));
        write_gates(floor, nd_floor_gates_off(&next), arena, &out);
        write_condition(waits, &out);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

bool guard_settle_is_done(const struct nd_floor *floor, const char *waits) {
        uint32_t on = ND_FLOOR_ALL & ~nd_floor_gates_off(floor);

        if (waits ? !nd_streq(floor->condition, "False") || !nd_streq(floor->explained, waits)
                  : !nd_streq(floor->condition, "True") || !nd_floor_is_settled(floor))
                return false;
        return floor->rendered == on;
}
