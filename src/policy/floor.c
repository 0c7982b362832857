/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/floor.h"

#include <ctype.h>
#include <string.h>

/* ---- versions ---- */

/* Reads one number and returns what follows it; nullptr: there is none. */
static const char *read_number(const char *text, uint32_t *ret) {
        size_t digits = strspn(text, "0123456789");

        if (digits == 0 || digits > ND_FLOOR_DIGITS || (*text == '0' && digits > 1))
                return nullptr;
        *ret = 0;
        for (size_t i = 0; i < digits; i++)
                *ret = *ret * 10 + (uint32_t) (text[i] - '0');
        return text + digits;
}

static const char *read_numbers(const char *text, struct nd_floor_version *version) {
        uint32_t *const parts[] = {&version->major, &version->minor, &version->patch};

        for (size_t i = 0; i < nd_count_of(parts); i++) {
                if (i > 0 && *text++ != '.')
                        return nullptr;
                text = read_number(text, parts[i]);
                if (!text)
                        return nullptr;
        }
        return text;
}

/* "-rc.1" and "-rc", but not "-rcustom". */
static bool is_before(const char *suffix) {
        static const char *const stages[] = {"-alpha", "-beta", "-rc"};

        for (size_t i = 0; i < nd_count_of(stages); i++)
                if (nd_has_prefix(suffix, stages[i]) && !isalpha((unsigned char) suffix[strlen(stages[i])]))
                        return true;
        return false;
}

int nd_floor_version_parse(const char *text, struct nd_floor_version *ret) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-";
        struct nd_floor_version version = {};
        const char *suffix;

        if (strnlen(text, ND_FLOOR_VERSION + 1) > ND_FLOOR_VERSION)
                return -EINVAL;
        suffix = read_numbers(*text == 'v' ? text + 1 : text, &version);
        if (!suffix || (*suffix && *suffix != '-' && *suffix != '+'))
                return -EINVAL;
        if (*suffix && (suffix[1] == '\0' || suffix[strspn(suffix, allowed)] != '\0'))
                return -EINVAL;
        version.before = is_before(suffix);
        *ret = version;
        return 0;
}

int nd_floor_minimum_parse(const char *text, struct nd_floor_version *ret) {
        struct nd_floor_version version = {};
        const char *rest = *text ? read_numbers(text, &version) : "";

        if (!rest || *rest)
                return -EINVAL;
        *ret = version;
        return 0;
}

const char *nd_floor_version_text(const struct nd_floor_version *version, struct nd_arena *arena) {
        return nd_floor_version_is_set(version)
                       ? nd_arena_format(arena, "%u.%u.%u", version->major, version->minor, version->patch)
                       : "";
}

static int compare(uint32_t a, uint32_t b) {
        return (a > b) - (a < b);
}

int nd_floor_version_compare(const struct nd_floor_version *a, const struct nd_floor_version *b) {
        int r = compare(a->major, b->major);

        if (r == 0)
                r = compare(a->minor, b->minor);
        if (r == 0)
                r = compare(a->patch, b->patch);
        return r != 0 ? r : b->before - a->before;
}

bool nd_floor_version_is_set(const struct nd_floor_version *minimum) {
        return minimum->major > 0 || minimum->minor > 0 || minimum->patch > 0;
}

bool nd_floor_meets(const struct nd_floor_version *minimum, const char *kubelet_version) {
        struct nd_floor_version version;

        if (!nd_floor_version_is_set(minimum))
                return true;
        return nd_floor_version_parse(kubelet_version, &version) == 0 && nd_floor_version_compare(&version, minimum) >= 0;
}

/* ---- the object ---- */

static const char *const gate_names[] = {
        [ND_FLOOR_POD_SECURITY] = "PodSecurityRelaxation",
        [ND_FLOOR_ROOT] = "RootInUserNamespace",
        [ND_FLOOR_NESTED] = "NestedContainer",
        [ND_FLOOR_PROC_MOUNT] = "UnmaskedProcMount",
        [ND_FLOOR_WIDE_IDS] = "WideIDs",
};
static_assert(nd_count_of(gate_names) == ND_FLOOR_GATES);

const char *nd_floor_gate_name(enum nd_floor_gate gate) {
        return gate_names[gate];
}

struct wire_metadata {
        const char *uid;
        const char *version;
        struct nd_shape_int generation;
};

struct wire_gate {
        const char *name;
        const char *required;
        bool enabled;
};

struct wire_condition {
        const char *type;
        const char *status;
        const char *message;
};

struct wire_part {
        const char *minimum;
        const char *pool_label;
        struct nd_shape_int observed;
        nd_list(struct wire_gate) gates;
        nd_list(struct wire_condition) conditions;
};

struct wire_floor {
        struct wire_metadata metadata;
        struct wire_part spec;
        struct wire_part status;
};

static const struct nd_shape_field metadata_fields[] = {
        ND_FIELD(wire_metadata, "uid", uid, TEXT),
        ND_FIELD(wire_metadata, "resourceVersion", version, TEXT),
        ND_FIELD(wire_metadata, "generation", generation, INT),
        {},
};
static const struct nd_shape metadata_shape = ND_SHAPE_OF(wire_metadata, metadata_fields);
static const struct nd_shape_field gate_fields[] = {
        ND_FIELD(wire_gate, "name", name, TEXT),
        ND_FIELD(wire_gate, "requiredMinimumVersion", required, TEXT),
        ND_FIELD(wire_gate, "enabled", enabled, BOOL),
        {},
};
static const struct nd_shape gate_shape = ND_SHAPE_OF(wire_gate, gate_fields);
static const struct nd_shape_field condition_fields[] = {
        ND_FIELD(wire_condition, "type", type, TEXT),
        ND_FIELD(wire_condition, "status", status, TEXT),
        ND_FIELD(wire_condition, "message", message, TEXT),
        {},
};
static const struct nd_shape condition_shape = ND_SHAPE_OF(wire_condition, condition_fields);
static const struct nd_shape_field part_fields[] = {
        ND_FIELD(wire_part, "minimumKubeletVersion", minimum, TEXT),
        ND_FIELD(wire_part, "poolLabel", pool_label, TEXT),
        ND_FIELD(wire_part, "observedGeneration", observed, INT),
        ND_NESTED(wire_part, "featureGates", gates, LIST, gate_shape),
        ND_NESTED(wire_part, "conditions", conditions, LIST, condition_shape),
        {},
};
static const struct nd_shape part_shape = ND_SHAPE_OF(wire_part, part_fields);
static const struct nd_shape_field floor_fields[] = {
        ND_NESTED(wire_floor, "metadata", metadata, INLINE, metadata_shape),
        ND_NESTED(wire_floor, "spec", spec, INLINE, part_shape),
        ND_NESTED(wire_floor, "status", status, INLINE, part_shape),
        {},
};
static const struct nd_shape floor_shape = ND_SHAPE_OF(wire_floor, floor_fields);

static struct nd_error *read_minimum(const char *text, const char *path, struct nd_floor_version *ret) {
        if (nd_floor_minimum_parse(nd_kube_or_empty(text), ret) < 0)
                return nd_error_new(ND_INVALID, 0, "%s '%.*s' is not of the form 1.30.0", path, ND_FLOOR_VERSION, text);
        return nullptr;
}

static enum nd_floor_gate gate_of(const char *name) {
        enum nd_floor_gate gate = 0;

        while (gate < ND_FLOOR_GATES && !nd_streq(gate_names[gate], nd_kube_or_empty(name)))
                gate++;
        return gate;
}

static struct nd_error *read_gates(const struct wire_floor *wire, struct nd_floor *floor) {
        for (enum nd_floor_gate gate = 0; gate < ND_FLOOR_GATES; gate++)
                nd_try(read_minimum(ND_FLOOR_REQUIRED, "default", &floor->required[gate]));
        nd_list_each(one, &wire->spec.gates) {
                enum nd_floor_gate gate = gate_of(one->name);

                if (gate == ND_FLOOR_GATES)
                        return nd_error_new(ND_INVALID, 0, "unknown gate in spec.featureGates");
                nd_try(read_minimum(one->required, "spec.featureGates[].requiredMinimumVersion", &floor->required[gate]));
                if (!nd_floor_version_is_set(&floor->required[gate]))
                        return nd_error_new(ND_INVALID, 0, "gate %s has no required version", gate_names[gate]);
        }
        nd_list_each(one, &wire->status.gates) {
                enum nd_floor_gate gate = gate_of(one->name);

                if (gate < ND_FLOOR_GATES && one->enabled)
                        floor->rendered |= ND_FLOOR_BIT(gate);
        }
        return nullptr;
}

static void read_condition(const struct wire_floor *wire, struct nd_floor *floor) {
        floor->condition = floor->explained = "";
        nd_list_each(one, &wire->status.conditions) {
                if (!nd_streq(nd_kube_or_empty(one->type), "Settled"))
                        continue;
                floor->condition = nd_kube_or_empty(one->status);
                floor->explained = nd_kube_or_empty(one->message);
        }
}

struct nd_error *nd_floor_decode(yyjson_val *object, struct nd_arena *arena, struct nd_floor *ret) {
        struct wire_floor wire = {};
        struct nd_floor floor;

        nd_try(nd_shape_decode(&floor_shape, object, arena, &wire));
        floor = (struct nd_floor) {.uid = nd_kube_or_empty(wire.metadata.uid),
                                   .resource_version = nd_kube_or_empty(wire.metadata.version),
                                   .generation = wire.metadata.generation.value,
                                   .observed = wire.status.observed.value,
                                   .pool_label = nd_kube_or_empty(wire.spec.pool_label)};
        if (strlen(floor.pool_label) > ND_FLOOR_POOL_LABEL)
                return nd_error_new(ND_INVALID, 0, "spec.poolLabel is longer than %d bytes", ND_FLOOR_POOL_LABEL);
        nd_try(read_minimum(wire.spec.minimum, "spec.minimumKubeletVersion", &floor.spec));
        nd_try(read_minimum(wire.status.minimum, "status.minimumKubeletVersion", &floor.status));
        nd_try(read_gates(&wire, &floor));
        read_condition(&wire, &floor);
        *ret = floor;
        return nullptr;
}

/* ---- accounting ---- */

const struct nd_floor_version *nd_floor_of_relaxations(const struct nd_floor *floor) {
        return nd_floor_version_compare(&floor->spec, &floor->status) < 0 ? &floor->spec : &floor->status;
}

const struct nd_floor_version *nd_floor_of_joining(const struct nd_floor *floor) {
        return nd_floor_version_compare(&floor->spec, &floor->status) < 0 ? &floor->status : &floor->spec;
}

const struct nd_floor_version *nd_floor_of_existing(const struct nd_floor *floor) {
        return &floor->status;
}

uint32_t nd_floor_gates_off(const struct nd_floor *floor) {
        uint32_t off = 0;

        if (!floor)
                return ND_FLOOR_ALL;
        for (enum nd_floor_gate gate = 0; gate < ND_FLOOR_GATES; gate++)
                if (nd_floor_version_compare(nd_floor_of_relaxations(floor), &floor->required[gate]) < 0)
                        off |= ND_FLOOR_BIT(gate);
        return off;
}

bool nd_floor_is_settled(const struct nd_floor *floor) {
        return floor->observed == floor->generation && nd_floor_version_compare(&floor->spec, &floor->status) == 0;
}

/* ---- constraints ---- */

static bool admits_root(const struct nd_scc_user *user) {
        if (nd_streq(nd_kube_or_empty(user->type), "MustRunAsNonRoot"))
                return false;
        if (nd_streq(nd_kube_or_empty(user->type), "MustRunAs"))
                return !user->uid.set || user->uid.value == 0;
        if (nd_streq(nd_kube_or_empty(user->type), "MustRunAsRange"))
                return user->min.set && user->min.value <= 0;
        return true;
}

uint32_t nd_floor_gates_of(const struct nd_scc *scc) {
        uint32_t gates;

        if (!nd_scc_requires_user_namespace(scc))
                return 0;
        gates = ND_FLOOR_BIT(admits_root(&scc->user) ? ND_FLOOR_ROOT : ND_FLOOR_WIDE_IDS);
        if (nd_streq(nd_kube_or_empty(scc->metadata.name), "nested-container"))
                gates |= ND_FLOOR_BIT(ND_FLOOR_NESTED);
        return gates;
}

static bool unmasks_proc(const struct nd_pod *pod) {
        const struct nd_pod_container *c;

        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++)
                if (c->security && nd_streq(nd_kube_or_empty(c->security->proc_mount), "Unmasked"))
                        return true;
        return false;
}

const char *nd_floor_obstacle(uint32_t gates_off, const struct nd_scc *scc, const struct nd_pod *pod, struct nd_arena *arena) {
        uint32_t missing = gates_off & nd_floor_gates_of(scc);

        if (gates_off & ND_FLOOR_BIT(ND_FLOOR_PROC_MOUNT) && !scc->allow_privileged && unmasks_proc(pod))
                missing |= ND_FLOOR_BIT(ND_FLOOR_PROC_MOUNT);
        for (enum nd_floor_gate gate = 0; gate < ND_FLOOR_GATES; gate++)
                if (missing & ND_FLOOR_BIT(gate))
                        return nd_arena_format(arena,
                                               "relies on user namespaces, and the version floor does not guarantee that all "
                                               "kubelets honour them (NodeVersionFloor " ND_FLOOR_NAME ", gate %s)",
                                               gate_names[gate]);
        return nullptr;
}
