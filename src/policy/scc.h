/* SPDX-License-Identifier: Apache-2.0 */
/* scc.h - security context constraints: who may run what, with defaults for what a pod leaves open
 *
 * OpenShift's model and words. An object is read by nd_scc_decode(), which also applies the defaults that OpenShift writes into it;
 * nd_scc_validate() says what is wrong with it. For one pod in one namespace a constraint is bound (the namespace's ranges put
 * in), then tried: nd_scc_fit() fills what the pod leaves open and says what does not fit.
 *
 * Where we differ, on purpose
 *   1. Paths are those of the pod ("spec.containers[0].securityContext.runAsUser"), and the same error is said once.
 *   2. A pod with a user namespace of its own has a window of IDs. What is generated lies in it, and an ID outside is refused here:
 *      such a pod could not start.
 *   3. A constraint that cannot be bound does not fit; it does not stop the others.
 *   4. SYS_ADMIN without its prefix is the same capability: no default for allowPrivilegeEscalation beside it.
 *   5. Four extension fields, without effect where they are absent: allowedAppArmorProfiles, allowedProcMountTypes, runAsGroup,
 *      supplementalGroupsPolicy.
 *   6. Annotations about seccomp, which no kubelet reads any more, are neither believed nor written.
 *   7. Windows pods are asked about what they take of their host. OpenShift leaves them alone. */
#pragma once

#include "kube/field.h"
#include "kube/pod.h"

enum {
        ND_SCC_WINDOW = 65536, /* IDs of a pod's user namespace, unless the kubelet is told otherwise */
        ND_SCC_LIST = 1024,    /* most items of a list in a constraint */
        ND_SCC_BYTES = 1 << 20,
};

struct nd_scc_id_pair { /* inclusive */
        struct nd_shape_int min;
        struct nd_shape_int max;
};

struct nd_scc_user {
        const char *type; /* MustRunAs, MustRunAsRange, MustRunAsNonRoot, RunAsAny */
        struct nd_shape_int uid;
        struct nd_shape_int min;
        struct nd_shape_int max;
};

struct nd_scc_groups {
        const char *type; /* MustRunAs, RunAsAny */
        nd_list(struct nd_scc_id_pair) ranges;
};

struct nd_scc_selinux {
        const char *type; /* MustRunAs, RunAsAny */
        struct nd_pod_selinux *options;
};

struct nd_scc {
        struct nd_kube_metadata metadata;
        struct nd_shape_int priority;
        bool allow_privileged;
        bool allow_host_dir;
        bool allow_host_network;
        bool allow_host_ports;
        bool allow_host_pid;
        bool allow_host_ipc;
        bool read_only_root;
        const char *user_namespace_level; /* AllowHostLevel, RequirePodLevel */
        enum nd_shape_switch default_allow_privilege_escalation;
        enum nd_shape_switch allow_privilege_escalation;
        struct nd_shape_texts default_add;
        struct nd_shape_texts required_drop;
        struct nd_shape_texts allowed_capabilities;
        struct nd_shape_texts volumes;
        nd_list(struct nd_pod_flex_volume) flex_volumes;
        struct nd_scc_selinux selinux;
        struct nd_scc_user user;
        struct nd_scc_groups supplemental_groups;
        struct nd_scc_groups fs_group;
        struct nd_shape_texts users;
        struct nd_shape_texts groups;
        struct nd_shape_texts seccomp_profiles;
        struct nd_shape_texts allowed_unsafe_sysctls;
        struct nd_shape_texts forbidden_sysctls;
        /* extensions */
        struct nd_shape_texts allowed_apparmor;    /* items == nullptr: not looked at */
        struct nd_shape_texts allowed_proc_mounts; /* items == nullptr: not looked at */
        struct nd_scc_groups run_as_group;         /* type == nullptr: not looked at */
        const char *groups_policy;                 /* nullptr: not looked at */
};

/* Reads an object and applies OpenShift's defaults. */
[[nodiscard]] struct nd_error *nd_scc_decode(yyjson_val *value, struct nd_arena *arena, struct nd_scc *ret);
void nd_scc_default(struct nd_scc *scc, struct nd_arena *arena);

/* What OpenShift refuses when an object is written, and besides what would make it useless: a range turned around, a strategy
 * without the values that it needs, volume types and capabilities that do not exist. */
void nd_scc_validate(const struct nd_scc *scc, struct nd_field_errors *errors);

bool nd_scc_requires_user_namespace(const struct nd_scc *scc);
bool nd_scc_allows_volume(const struct nd_scc *scc, const char *type);
const char *nd_scc_volume_type(enum nd_pod_volume_source source); /* as constraints spell it: "cephFS" */

/* What a namespace's annotations give. */
struct nd_scc_namespace {
        const char *uid_range;           /* "1000650000/10000" */
        const char *supplemental_groups; /* the same, comma separated; nullptr: the uid range */
        const char *mcs;                 /* "s0:c26,c5" */
};

#define ND_SCC_ANNOTATION_UIDS "openshift.io/sa.scc.uid-range"
#define ND_SCC_ANNOTATION_GROUPS "openshift.io/sa.scc.supplemental-groups"
#define ND_SCC_ANNOTATION_MCS "openshift.io/sa.scc.mcs"

struct nd_scc_namespace nd_scc_namespace_of(const struct nd_shape_pairs *annotations);

/* "first/count" or "first-last", 32 bits, never empty. Strict: OpenShift's scanner takes trailing junk and lets sums wrap. */
[[nodiscard]] struct nd_error *nd_scc_block_parse(const char *text, struct nd_scc_id_pair *ret);

/* A copy whose open values are those of the namespace. The error names what is missing. */
[[nodiscard]] struct nd_error *nd_scc_bind(const struct nd_scc *scc, const struct nd_scc_namespace *namespace,
                                           struct nd_arena *arena, struct nd_scc *ret);

/* Whether the pod asks for anything that this constraint never allows, whatever it fills in. Cheap, and says nothing. */
bool nd_scc_is_out(const struct nd_scc *scc, const struct nd_pod *pod);

/* Fills what the pod leaves open, and validates. The pod must be one that may be changed (nd_pod_copy()). */
void nd_scc_fit(const struct nd_scc *bound, struct nd_pod *pod, uint32_t window, struct nd_field_errors *errors);

/* ---- order (scc-order.c) ---- */

uint32_t nd_scc_points(const struct nd_scc *scc); /* fewer = stricter */

/* Which is tried first: the higher priority; then, where a user namespace is wanted, the one that requires it; then fewer points; then
 * the name. Below, at or above 0. */
int nd_scc_compare(const struct nd_scc *a, const struct nd_scc *b, bool user_namespace);
void nd_scc_sort(const struct nd_scc **sccs, size_t count, bool user_namespace);

/* Why a goes before b, in OpenShift's words: "forbids host ports". */
const char *nd_scc_reason(const struct nd_scc *a, const struct nd_scc *b, bool user_namespace);

/* ---- choice (scc-choice.c) ---- */

enum nd_scc_userns {                        /* the label security.nodens.io/user-namespaces of a namespace */
                     ND_SCC_USERNS_ASKED,   /* only where nothing fits without */
                     ND_SCC_USERNS_DEFAULT, /* set it wherever a pod does not say */
                     ND_SCC_USERNS_REQUIRE, /* and refuse pods that cannot have it */
};

/* Constraints in the two orders in which they are tried; made once, for many requests. */
struct nd_scc_set {
        const struct nd_scc **plain;
        const struct nd_scc **with_user_namespace;
        size_t count;
};

struct nd_scc_set nd_scc_set_make(const struct nd_scc *const *sccs, size_t count, struct nd_arena *arena);

struct nd_scc_request {
        const struct nd_scc_set *set;
        struct nd_scc_namespace namespace;
        enum nd_scc_userns userns;
        bool may_set_user_namespace; /* a node could run it */
        bool host_network_gate;      /* UserNamespacesHostNetworkSupport */
        uint32_t window;
        bool update;    /* then the pod must fit as it is */
        bool ephemeral; /* but for its ephemeral containers, which are new and may be filled */
        /* Asked only about constraints that fit. */
        bool (*may_use)(const struct nd_scc *scc, void *userdata);
        bool (*is_open)(void *userdata); /* where given: whether that had to guess; then nobody wants to know why not */
        void *userdata;
};

/* Why one constraint was not taken. */
struct nd_scc_miss {
        const struct nd_scc *scc;
        const char *text; /* "provider restricted-v2: ..." */
};

struct nd_scc_choice {
        const struct nd_scc *scc; /* nullptr: none */
        struct nd_pod *pod;       /* as it would be admitted */
        bool set_user_namespace;  /* hostUsers: false is of ours */
        nd_vector(struct nd_scc_miss) misses;
        const char *refusal; /* where there is none: the whole text */
};

void nd_scc_choice_done(struct nd_scc_choice *choice);

/* Everything that is handed back lives in the arena, but for the vector. */
void nd_scc_choose(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                   struct nd_scc_choice *ret);

/* ---- the constraints that come with the guard (scc-defaults.c) ---- */

struct nd_scc_default {
        struct nd_scc scc;
        const char *description;
        bool everybody; /* usable by every authenticated user without a grant */
};

extern const struct nd_scc_default nd_scc_defaults[];
extern const size_t nd_scc_default_count;
