/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - what relies on user namespaces in a cluster, and what could have one
 *
 * Facts about the cluster come first (namespaces, nodes, constraints, roles, volumes); pods and
 * workload controllers are judged against them, one at a time. Three questions are answered:
 *      findings        what would be exposed if user namespaces were no longer honoured: after a
 *                      downgrade, on an old node, or with a feature gate turned off
 *      violations      pods that are older than a rule of their namespace and do not follow it
 *      readiness       whether a workload would run as it does now with hostUsers: false
 *
 * A list of facts that is missing never makes an answer better: a workload that needs it is to be
 * checked by a person. Pure functions: all objects come from other parties. */
#pragma once

#include "base/map.h"
#include "kube/version.h"
#include "policy/floor.h"
#include "policy/podsecurity.h"

enum {
        ND_AUDIT_REASONS = 8,     /* of one verdict; later ones are only counted */
        ND_AUDIT_FINDINGS = 8,    /* about one object */
        ND_AUDIT_GRANTS = 200000, /* in the cluster */
};

/* Labels of a namespace, and annotations, as nodens-guard reads and writes them. */
#define ND_AUDIT_LABEL_CONSTRAINTS "security.nodens.io/constraints"
#define ND_AUDIT_LABEL_USER_NAMESPACES "security.nodens.io/user-namespaces"

/* ---- kinds of objects (audit-objects.c) ---- */

/* In the order in which they are needed: facts before what is judged by them. */
enum nd_audit_kind {
        ND_AUDIT_NAMESPACE,
        ND_AUDIT_NODE,
        ND_AUDIT_RUNTIME_CLASS,
        ND_AUDIT_FLOOR,
        ND_AUDIT_CONSTRAINT,
        ND_AUDIT_CONSTRAINT_OPENSHIFT,
        ND_AUDIT_CLUSTER_ROLE,
        ND_AUDIT_ROLE,
        ND_AUDIT_CLUSTER_ROLE_BINDING,
        ND_AUDIT_ROLE_BINDING,
        ND_AUDIT_VOLUME,
        ND_AUDIT_CLAIM,
        ND_AUDIT_DEPLOYMENT, /* the first of the workloads */
        ND_AUDIT_STATEFUL_SET,
        ND_AUDIT_DAEMON_SET,
        ND_AUDIT_REPLICA_SET,
        ND_AUDIT_REPLICATION_CONTROLLER,
        ND_AUDIT_CRON_JOB,
        ND_AUDIT_JOB,
        ND_AUDIT_POD,
        ND_AUDIT_KINDS,
};

struct nd_audit_resource {
        const char *kind;
        const char *group; /* "" = core */
        const char *path;  /* of the list */
        bool optional;     /* a cluster without it is complete */
};

extern const struct nd_audit_resource nd_audit_resources[ND_AUDIT_KINDS];

/* Returns the kind of an object with these two fields; ND_AUDIT_KINDS: of no interest. */
enum nd_audit_kind nd_audit_kind_of(const char *api_version, const char *kind);

/* ---- facts ---- */

struct nd_audit_namespace {
        const char *name;
        const char *constraints;     /* the label; "" = none */
        const char *user_namespaces; /* the label; "" = none */
        bool has_enforce_label;      /* of pod security */
        struct nd_podsecurity_rule enforce;
        struct nd_scc_namespace ranges;
};

struct nd_audit_node {
        const char *name;
        const char *version; /* of the kubelet */
        bool too_old;        /* or the version is not readable */
        bool schedulable;
        bool windows;
        struct nd_shape_texts handlers; /* those that offer user namespaces */
};

struct nd_audit_volume {
        const char *source; /* "nfs", "csi"; "" = unknown */
        const char *driver; /* of csi; "" = none */
        const char *filesystem;
        bool block;
};

struct nd_audit_claim {
        const char *volume; /* "" = not bound */
        bool block;
};

/* The constraints that a role lets its subjects use. */
struct nd_audit_role {
        bool any;        /* all of them */
        bool everything; /* the role allows every verb on every resource */
        struct nd_shape_texts names;
};

/* A subject of a binding, or a name in a constraint. */
struct nd_audit_grant {
        const char *subject_kind; /* User, Group, ServiceAccount */
        const char *subject;      /* of a service account: "NAMESPACE:NAME" */
        const char *kind;         /* of the object that grants it */
        const char *namespace;    /* "" = the whole cluster */
        const char *name;
        const char *role_name;             /* "" = the constraint names the subject itself */
        const struct nd_audit_role *role;  /* nullptr likewise */
        const struct nd_scc *constraint;   /* that names the subject; nullptr = those of the role */
        const struct nd_audit_grant *next; /* of the same subject in the same place */
};

struct nd_audit_cluster {
        struct nd_arena *arena;     /* all facts are in it */
        bool known[ND_AUDIT_KINDS]; /* lists that were read completely */
        bool host_network_gate;     /* UserNamespacesHostNetworkSupport is on */
        const char *minimum;        /* version of the oldest kubelet that is trusted */
        struct nd_map namespaces;   /* struct nd_audit_namespace */
        struct nd_map nodes;        /* struct nd_audit_node */
        struct nd_map classes;      /* runtime class -> handler */
        nd_vector(const struct nd_scc *) constraints;
        struct nd_map constraint_names;
        struct nd_scc_set set; /* valid after nd_audit_settle() */
        struct nd_map roles;   /* "NAMESPACE/NAME", "/NAME" for the whole cluster */
        nd_vector(struct nd_audit_grant *) grants;
        struct nd_map granted;     /* place and subject -> the last of its grants */
        bool grants_cut;           /* there are more than a limit */
        struct nd_map volumes;     /* struct nd_audit_volume */
        struct nd_map claims;      /* "NAMESPACE/NAME" -> struct nd_audit_claim */
        struct nd_map images;      /* name -> its highest owner's ID + 1, where known */
        struct nd_map host_mapped; /* UIDs of pods with a process in the host's user namespace */
        bool maps_known;           /* host_mapped is of the node map_node */
        const char *map_node;
};

void nd_audit_cluster_done(struct nd_audit_cluster *cluster);

/* Takes one object of a kind that is a fact; kinds in their order. An error is about this object
 * alone. */
[[nodiscard]] struct nd_error *nd_audit_put(struct nd_audit_cluster *cluster, enum nd_audit_kind kind, yyjson_val *object);

/* After the facts and before the workloads. */
void nd_audit_settle(struct nd_audit_cluster *cluster);

/* ---- pods and workloads ---- */

struct nd_audit_workload {
        enum nd_audit_kind kind;
        const char *namespace;
        const char *name;
        const char *uid;
        /* the controller that owns it; "" = none */
        const char *owner_kind;
        const char *owner;
        bool known_owner;                      /* of a kind that is judged itself */
        struct nd_pod pod;                     /* of a controller: its template */
        struct nd_shape_texts claim_templates; /* of a stateful set */
        /* an extended resource or a resource claim that a container asks for; "" = none */
        const char *device;
        bool finished;      /* a pod or a job that has ended */
        const char *mirror; /* of a static pod: the UID on its node; "" = none */
        /* the highest ID of a running container's process, where reported; 0 = unknown */
        int64_t running_id;
};

[[nodiscard]] struct nd_error *nd_audit_workload_decode(enum nd_audit_kind kind, yyjson_val *object, struct nd_arena *arena,
                                                        struct nd_audit_workload *ret);

/* ---- findings (audit-findings.c) ---- */

enum nd_audit_topic {
        ND_AUDIT_NESTED_POD,
        ND_AUDIT_RELYING_POD,
        ND_AUDIT_RELYING_GRANT,
        ND_AUDIT_WEAK_NODE,
        ND_AUDIT_HOST_MAP,
        ND_AUDIT_REQUIRED_TEMPLATE,
        ND_AUDIT_HOST_NETWORK,
        /* violations */
        ND_AUDIT_NOT_ADMITTED,
        ND_AUDIT_WITHOUT_NAMESPACE,
        ND_AUDIT_POD_SECURITY,
        ND_AUDIT_TOPICS,
};

static inline bool nd_audit_is_violation(enum nd_audit_topic topic) {
        return topic >= ND_AUDIT_NOT_ADMITTED;
}

const char *nd_audit_topic_name(enum nd_audit_topic topic); /* "nested-container-pod" */

struct nd_audit_finding {
        enum nd_audit_topic topic;
        bool severe;      /* root of the host, or its users without limits */
        const char *text; /* what would happen, and what to do */
};

struct nd_audit_findings {
        struct nd_audit_finding items[ND_AUDIT_FINDINGS];
        size_t count;
};

/* What a constraint allows only because of the user namespace that it requires; "" = nothing.
 * ret_severe: more than users of the host other than root. */
const char *nd_audit_exposure(const struct nd_scc *scc, struct nd_arena *arena, bool *ret_severe);

/* Whether the guard's webhooks leave a namespace out, with any labels. */
bool nd_audit_is_left_out(const char *namespace);

/* The name of the runtime's handler for a pod; nullptr: its class is not known. */
const char *nd_audit_handler(const struct nd_audit_cluster *cluster, const struct nd_pod *pod);

/* Judges a pod or a controller. The texts are in the arena. */
void nd_audit_find(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload, struct nd_arena *arena,
                   struct nd_audit_findings *ret);

/* Whether a grant is a finding: of a constraint with severe exposure, to a subject that is not an
 * administrator of the cluster anyway. */
[[nodiscard]] bool nd_audit_find_grant(const struct nd_audit_cluster *cluster, const struct nd_audit_grant *grant,
                                       struct nd_arena *arena, struct nd_audit_finding *ret);

/* ---- grants (audit-grants.c) ---- */

[[nodiscard]] struct nd_error *nd_audit_put_role(struct nd_audit_cluster *cluster, enum nd_audit_kind kind,
                                                 yyjson_val *object);
[[nodiscard]] struct nd_error *nd_audit_put_binding(struct nd_audit_cluster *cluster, enum nd_audit_kind kind,
                                                    yyjson_val *object);
/* The subjects that a constraint itself names. */
void nd_audit_put_subjects(struct nd_audit_cluster *cluster, const struct nd_scc *scc);

[[nodiscard]] bool nd_audit_grant_covers(const struct nd_audit_grant *grant, const struct nd_scc *scc);
/* Whether a service account may use a constraint in its namespace. */
[[nodiscard]] bool nd_audit_may_use(const struct nd_audit_cluster *cluster, const char *namespace, const char *account,
                                    const struct nd_scc *scc);

/* ---- readiness (audit-ready.c) ---- */

/* The later ones win. */
enum nd_audit_verdict {
        ND_AUDIT_YES,
        ND_AUDIT_CHECK, /* a person has to decide */
        ND_AUDIT_NO,
        ND_AUDIT_ALREADY, /* hostUsers is false */
        ND_AUDIT_VERDICTS,
};

const char *nd_audit_verdict_name(enum nd_audit_verdict verdict); /* "yes" */

struct nd_audit_readiness {
        enum nd_audit_verdict verdict;
        const char *reasons[ND_AUDIT_REASONS];
        size_t reason_count; /* may exceed the array */
        /* hostUsers: false cannot be set: labels of the namespace have no effect on it */
        bool left_alone;
        /* with the label: the constraint that would admit it; nullptr = none, or unknown */
        const char *constraint;
        const char *grant;   /* the one that would admit it after a grant; nullptr = none */
        const char *account; /* the service account that needs the grant */
        int64_t user;        /* that the constraint would choose for it; -1 = none */
};

void nd_audit_judge(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload, struct nd_arena *arena,
                    struct nd_audit_readiness *ret);
