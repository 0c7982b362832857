/* SPDX-License-Identifier: Apache-2.0 */
/* scc.h - security context constraints: what a user may run, and defaults for open fields of a pod
 *
 * OpenShift's model and texts. nd_scc_decode() reads an object and applies the defaults that
 * OpenShift writes into it; nd_scc_validate() validates it. For one pod in one namespace a
 * constraint is bound (the namespace's ranges are filled in), then tried: nd_scc_fit() fills in
 * open fields of the pod and reports what does not fit.
 *
 * Deliberate differences from OpenShift
 *   1. Paths are those of the pod ("spec.containers[0].securityContext.runAsUser"), and an error is
 *      reported once.
 *   2. A pod with a user namespace of its own has a window of IDs. Generated IDs lie in it, and an
 *      ID outside is refused here: such a pod could not start.
 *   3. A constraint that cannot be bound does not fit; the others are still tried.
 *   4. SYS_ADMIN without its prefix is the same capability: no default for allowPrivilegeEscalation
 *      beside it.
 *   5. Four extension fields, without effect if they are absent: allowedAppArmorProfiles,
 *      allowedProcMountTypes, runAsGroup, supplementalGroupsPolicy.
 *   6. Annotations about seccomp, which current kubelets do not read, are neither evaluated nor
 *      written.
 *   7. The host access of Windows pods is checked. OpenShift does not check Windows pods. */
#pragma once

#include "kube/field.h"
#include "kube/pod.h"

enum {
        ND_SCC_WINDOW = 65536, /* IDs of a pod's user namespace, the kubelet's default */
        ND_SCC_LIST = 1024,    /* maximum of items of a list in a constraint */
        ND_SCC_BYTES = 1 << 20,
};

/* Inclusive. */
struct nd_scc_id_pair {
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
        struct nd_shape_texts allowed_apparmor;    /* items == nullptr: not compared */
        struct nd_shape_texts allowed_proc_mounts; /* items == nullptr: not compared */
        struct nd_scc_groups run_as_group;         /* type == nullptr: not compared */
        const char *groups_policy;                 /* nullptr: not compared */
};

extern const struct nd_shape nd_scc_shape; /* without apiVersion and kind */

/* Reads an object and applies OpenShift's defaults. */
[[nodiscard]] struct nd_error *nd_scc_decode(yyjson_val *value, struct nd_arena *arena, struct nd_scc *ret);
void nd_scc_default(struct nd_scc *scc, struct nd_arena *arena);

/* Reports what OpenShift refuses when an object is written, and what would make it useless: a
 * reversed range, a strategy without its values, unknown volume types and capabilities. */
void nd_scc_validate(const struct nd_scc *scc, struct nd_field_errors *errors);

/* Sysctls that every pod may set. */
extern const struct nd_shape_texts nd_scc_safe_sysctls;

bool nd_scc_requires_user_namespace(const struct nd_scc *scc);
bool nd_scc_allows_volume(const struct nd_scc *scc, const char *type);
/* Returns the type as spelled in constraints: "cephFS". */
const char *nd_scc_volume_type(enum nd_pod_volume_source source);

/* The ranges in a namespace's annotations. */
struct nd_scc_namespace {
        const char *uid_range;           /* "1000650000/10000" */
        const char *supplemental_groups; /* comma separated blocks; nullptr: the uid range */
        const char *mcs;                 /* "s0:c26,c5" */
};

#define ND_SCC_ANNOTATION_UIDS "openshift.io/sa.scc.uid-range"
#define ND_SCC_ANNOTATION_GROUPS "openshift.io/sa.scc.supplemental-groups"
#define ND_SCC_ANNOTATION_MCS "openshift.io/sa.scc.mcs"

struct nd_scc_namespace nd_scc_namespace_of(const struct nd_shape_pairs *annotations);

/* Parses "first/count" or "first-last", 32 bits, never empty. Strict: OpenShift's scanner accepts
 * trailing garbage and lets sums wrap. */
[[nodiscard]] struct nd_error *nd_scc_block_parse(const char *text, struct nd_scc_id_pair *ret);

/* Returns a copy with open values filled in from the namespace. The error names the missing
 * annotation. */
[[nodiscard]] struct nd_error *nd_scc_bind(const struct nd_scc *scc, const struct nd_scc_namespace *namespace,
                                           struct nd_arena *arena, struct nd_scc *ret);

/* Whether the pod has a field that this constraint never allows, regardless of what it fills in.
 * Cheap, and gives no reason. */
bool nd_scc_is_out(const struct nd_scc *scc, const struct nd_pod *pod);

/* Fills in open fields of the pod and validates it. The pod must be a copy that may be changed
 * (nd_pod_copy()). */
void nd_scc_fit(const struct nd_scc *bound, struct nd_pod *pod, uint32_t window, struct nd_field_errors *errors);

/* ---- order (scc-order.c) ---- */

uint32_t nd_scc_points(const struct nd_scc *scc); /* fewer = stricter */

/* The order in which constraints are tried: the higher priority first; then, for a user namespace,
 * a constraint that requires it; then fewer points; then the name. Returns a value below, at or
 * above 0. */
int nd_scc_compare(const struct nd_scc *a, const struct nd_scc *b, bool user_namespace);
/* Of two constraints that admit a pod: whether a grants less. Priorities do not count. */
bool nd_scc_is_stricter(const struct nd_scc *a, const struct nd_scc *b);
void nd_scc_sort(const struct nd_scc **sccs, size_t count, bool user_namespace);

/* ---- choice (scc-choice.c) ---- */

/* The label security.nodens.io/user-namespaces of a namespace. */
enum nd_scc_userns {
        ND_SCC_USERNS_ASKED,   /* only if no constraint fits without */
        ND_SCC_USERNS_DEFAULT, /* set it for every pod that leaves it open */
        ND_SCC_USERNS_REQUIRE, /* and refuse pods that cannot have it */
};

/* Constraints in the two orders in which they are tried; built once, for many requests. */
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
        bool may_set_user_namespace; /* a schedulable node offers it */
        bool host_network_gate;      /* UserNamespacesHostNetworkSupport */
        uint32_t window;
        bool update;    /* the pod must fit as it is */
        bool ephemeral; /* except for its ephemeral containers, which are new and may be filled */
        /* relaxations that the version floor does not cover, ND_FLOOR_BIT() of floor.h */
        uint32_t gates_off;
        /* Called only for constraints that fit. */
        bool (*may_use)(const struct nd_scc *scc, void *userdata);
        /* if set: whether may_use() had to guess; then no reasons are recorded */
        bool (*is_open)(void *userdata);
        void *userdata;
};

/* Why one constraint does not admit the pod. */
struct nd_scc_miss {
        const struct nd_scc *scc;
        const char *text; /* "provider restricted-v2: ..." */
};

struct nd_scc_choice {
        const struct nd_scc *scc; /* nullptr: none */
        struct nd_pod *pod;       /* as admitted, with filled fields */
        bool set_user_namespace;  /* hostUsers: false was set here */
        nd_vector(struct nd_scc_miss) misses;
        /* if scc is nullptr: every reason, in OpenShift's words; scc-advice.h has what to do */
        const char *refusal;
};

void nd_scc_choice_done(struct nd_scc_choice *choice);

/* All output lives in the arena, except for the vector. */
void nd_scc_choose(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                   struct nd_scc_choice *ret);

/* Whether hostUsers: false may be set on behalf of the user. */
bool nd_scc_may_set_user_namespace(const struct nd_scc_request *request, const struct nd_pod *pod);

enum nd_scc_result {
        ND_SCC_MISFIT,
        ND_SCC_FITS_CHANGED, /* it would have to fill in fields, which an update must not */
        ND_SCC_FITS,
};

struct nd_scc_trial {
        enum nd_scc_result result;
        struct nd_pod *pod; /* with filled fields */
        /* why the constraint cannot be bound to the namespace; nullptr: it can */
        const char *failure;
};

/* Tries one constraint on the pod as given, without access. Adds what does not fit to the
 * errors. */
void nd_scc_try(const struct nd_scc_request *request, const struct nd_scc *scc, const struct nd_pod *pod,
                struct nd_field_errors *errors, struct nd_scc_trial *ret);

/* ---- the default constraints (scc-defaults.c) ---- */

struct nd_scc_default {
        struct nd_scc scc;
        const char *description;
        bool for_all_users; /* usable by every authenticated user without a grant */
};

extern const struct nd_scc_default nd_scc_defaults[];
extern const size_t nd_scc_default_count;
