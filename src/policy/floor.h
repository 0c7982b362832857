/* SPDX-License-Identifier: Apache-2.0 */
/* floor.h - the version floor: which kubelets a cluster accepts, and what it may rely on therefore
 *
 * An object NodeVersionFloor has a minimum in its spec, the intent, and one in its status, which
 * all parts of the guard act on. While they differ
 *      relaxations     follow the lower one: nothing is relied on that may not hold
 *      existing nodes  are judged by the status: they had no chance to be upgraded before
 *      joining nodes   are judged by the higher one: none joins that would be locked next
 *
 * A relaxation is on if the lower minimum is at least the version that it requires. Versions are
 * reported by the kubelets themselves: a safety net, not a boundary. */
#pragma once

#include "policy/scc.h"

enum {
        ND_FLOOR_DIGITS = 6,    /* maximum of a number in a version */
        ND_FLOOR_VERSION = 128, /* maximum length of a kubelet's version */
        ND_FLOOR_POOL_LABEL = 317,
};

#define ND_FLOOR_NAME "cluster" /* the only object that counts */
#define ND_FLOOR_REQUIRED "1.30.0"

struct nd_floor_version {
        uint32_t major, minor, patch;
        /* of an alpha, beta or release candidate, which comes before the version itself */
        bool before;
};

/* Parses the version of a kubelet: "v1.36.3", "v1.30.4+k3s1", "v1.29.6-eks-1552ad0",
 * "v1.30.0-rc.1". What a vendor appends does not count. Returns -EINVAL for anything else: no
 * spaces, no leading zeros, no missing parts. */
[[nodiscard]] int nd_floor_version_parse(const char *text, struct nd_floor_version *ret);
/* Parses a minimum: "1.30.0", or "" for none, which is 0.0.0. Returns -EINVAL. */
[[nodiscard]] int nd_floor_minimum_parse(const char *text, struct nd_floor_version *ret);
/* Returns "1.30.0", or "" for none. */
const char *nd_floor_version_text(const struct nd_floor_version *version, struct nd_arena *arena);
/* Returns a value below, at or above 0. */
int nd_floor_version_compare(const struct nd_floor_version *a, const struct nd_floor_version *b);
/* Whether there is a minimum. */
bool nd_floor_version_is_set(const struct nd_floor_version *minimum);
/* Whether a kubelet that reports this text is new enough. Text that is not a version
 * meets only the empty minimum. */
bool nd_floor_meets(const struct nd_floor_version *minimum, const char *kubelet_version);

/* Relaxations of the guard. */
enum nd_floor_gate {
        ND_FLOOR_POD_SECURITY, /* checks of pod security that skip pods with a user namespace */
        ND_FLOOR_ROOT,         /* constraints with uid 0 that require a user namespace */
        ND_FLOOR_NESTED,       /* the constraint nested-container */
        ND_FLOOR_PROC_MOUNT,   /* procMount: Unmasked without a privileged constraint */
        /* IDs outside of the namespace's range by a constraint that requires a user namespace, as
         * restricted-v3 has them */
        ND_FLOOR_WIDE_IDS,
        ND_FLOOR_GATES,
};

/* Sets of gates, by bits. */
#define ND_FLOOR_BIT(gate) (1u << (gate))
#define ND_FLOOR_ALL ((1u << ND_FLOOR_GATES) - 1)

const char *nd_floor_gate_name(enum nd_floor_gate gate); /* "RootInUserNamespace" */

struct nd_floor {
        const char *uid;
        const char *resource_version;
        int64_t generation;             /* of the spec */
        struct nd_floor_version spec;   /* the intent */
        struct nd_floor_version status; /* what all parts act on */
        int64_t observed;               /* generation that the status is about; 0: none */
        /* label of nodes with the name of their pool; "": all are one */
        const char *pool_label;
        /* status and message of the condition Settled; "": none */
        const char *condition, *explained;
        struct nd_floor_version required[ND_FLOOR_GATES];
        uint32_t rendered; /* gates that the status lists as on */
};

/* Reads an object. An invalid one is an error: the caller must not take it for the lack of one. */
[[nodiscard]] struct nd_error *nd_floor_decode(yyjson_val *object, struct nd_arena *arena, struct nd_floor *ret);

/* The lower one, the higher one, and the status. */
const struct nd_floor_version *nd_floor_of_relaxations(const struct nd_floor *floor);
const struct nd_floor_version *nd_floor_of_joining(const struct nd_floor *floor);
const struct nd_floor_version *nd_floor_of_existing(const struct nd_floor *floor);

/* Returns the gates that are off; without a floor all of them. */
uint32_t nd_floor_gates_off(const struct nd_floor *floor);
/* Whether the status is about the spec as it is. */
bool nd_floor_is_settled(const struct nd_floor *floor);

/* Returns the gates that a constraint needs, regardless of the pod. */
uint32_t nd_floor_gates_of(const struct nd_scc *scc);
/* Returns why gates that are off prevent this constraint from admitting the pod; nullptr: they do
 * not. */
const char *nd_floor_obstacle(uint32_t gates_off, const struct nd_scc *scc, const struct nd_pod *pod, struct nd_arena *arena);
