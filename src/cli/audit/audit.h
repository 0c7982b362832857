/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - the state of a `nodens audit` run, for its own modules
 *
 *      source.c            objects of a live cluster, or of files
 *      idmaps.c            user namespaces of the processes on this node
 *      collect.c           facts first, then judges every pod and workload
 *      advice.c            what the namespaces' labels would do
 *      report.c, json.c, policy-report.c       print the results
 *      publish.c           applies PolicyReport objects */
#pragma once

#include "base/vector.h"
#include "policy/audit.h"

enum {
        AUDIT_PAGE = 250,           /* objects of a list that are requested at once */
        AUDIT_PAGES = 8000,         /* of one list */
        AUDIT_BYTES = 256 << 20,    /* size limit of a file */
        AUDIT_TOTAL = 512 << 20,    /* of all files */
        AUDIT_ITEMS = 100000,       /* findings that are kept, and workloads */
        AUDIT_OWNERS = 500000,      /* replica sets and jobs whose owners are kept */
        AUDIT_ERRORS = 100,         /* errors that are kept */
        AUDIT_ROWS = 1000,          /* of a table; JSON has all */
        AUDIT_IMAGES = 100000,      /* lines of a file with IDs of images */
        AUDIT_REPORT_RESULTS = 500, /* in one PolicyReport: an object has at most 1.5 MB */
        AUDIT_REPORT = 256 << 20,   /* size of the output */
};

/* A finding about an object, or about the pods of one controller. */
struct cli_audit_item {
        enum nd_audit_topic topic;
        bool severe;
        const char *namespace; /* "" = the cluster */
        const char *kind;
        const char *name;
        const char *text;
        size_t pods;     /* of a controller: how many */
        const char *pod; /* the first of them; "" = the object itself */
};

struct cli_audit_workload {
        const char *namespace;
        const char *kind;
        const char *name;
        struct nd_audit_readiness readiness;
};

/* What a namespace's workloads could have. */
struct cli_audit_namespace {
        const char *name;
        const struct nd_audit_namespace *facts; /* nullptr: unknown */
        size_t counts[ND_AUDIT_VERDICTS];
        size_t pinned;       /* not ready, and the label default would change them */
        size_t left_alone;   /* not ready, and the label default leaves them alone */
        size_t refused;      /* ready, but no constraint admits them without a grant */
        size_t moved;        /* ready, but a constraint would choose their user */
        const char *grant;   /* would help; nullptr = none */
        const char *account; /* that needs it */
        const char *label;   /* "default", "require"; "" = none would help */
        const char *command; /* that switches it on; "" = nothing to do */
        const char *advice;  /* what to do before; "" = nothing */
};

struct cli_audit_source;

struct cli_audit {
        struct nd_arena arena;
        struct nd_audit_cluster cluster;
        struct cli_audit_source *source;
        struct nd_map owners; /* "KIND/NAMESPACE/NAME" -> name of the controller's own controller */
        nd_vector(struct cli_audit_item) items;
        struct nd_map item_index; /* what makes two items one -> its number + 1 */
        nd_vector(struct cli_audit_workload) workloads;
        struct nd_map workload_index;
        nd_vector(struct cli_audit_namespace) namespaces; /* with workloads, sorted */
        nd_vector(const char *) errors;
        size_t error_count;
        bool cut; /* a limit was reached */
        size_t objects;
};

void cli_audit_done(struct cli_audit *audit);
/* Consumes the error: the audit continues and is incomplete. */
void cli_audit_note(struct cli_audit *audit, struct nd_error *error);
static inline bool cli_audit_is_incomplete(const struct cli_audit *audit) {
        return audit->error_count > 0 || audit->cut;
}

/* ---- source.c ---- */

struct cli_audit_place {
        const char *kubeconfig;
        char **files; /* instead of a cluster; count 0 = a cluster */
        int file_count;
        uint32_t timeout_s; /* of the whole run */
};

void cli_audit_source_free(struct cli_audit_source *source);
[[nodiscard]] struct nd_error *cli_audit_source_open(const struct cli_audit_place *place, struct cli_audit_source **ret);

/* Calls take() with each object of a kind. ret_exists: the API has this kind, or a file has such an
 * object. */
[[nodiscard]] struct nd_error *cli_audit_source_each(struct cli_audit_source *source, enum nd_audit_kind kind,
                                                     void (*take)(yyjson_val *object, void *userdata), void *userdata,
                                                     bool *ret_exists);
/* A request to the cluster's API. */
[[nodiscard]] struct nd_error *cli_audit_source_ask(struct cli_audit_source *source, const char *method, const char *path,
                                                    const char *content_type, const char *body, long *ret_status,
                                                    yyjson_doc **ret);

/* ---- idmaps.c ---- */

/* The UID in the path of a pod's cgroup, of either cgroup driver; nullptr: none. The caller frees
 * it. */
[[nodiscard]] char *cli_audit_pod_of_cgroup(const char *cgroup);
/* Whether ID 0 inside is ID 0 outside. */
[[nodiscard]] bool cli_audit_is_host_map(const char *uid_map);
/* Finds pods with processes in the node's user namespace. */
[[nodiscard]] struct nd_error *cli_audit_read_maps(struct nd_map *ret);

/* ---- collect.c ---- */

/* Reads and judges everything. What cannot be read is noted. */
void cli_audit_collect(struct cli_audit *audit);
/* A file with lines "ID IMAGE": the highest owner's ID of the files in an image. */
[[nodiscard]] struct nd_error *cli_audit_read_images(struct cli_audit *audit, const char *path);

/* ---- advice.c ---- */

void cli_audit_summarize(struct cli_audit *audit);

/* ---- reports ---- */

size_t cli_audit_count(const struct cli_audit *audit, bool violations);
void cli_audit_report_text(const struct cli_audit *audit, bool workloads);
/* The error: the output would exceed its limit, and nothing was printed. */
[[nodiscard]] struct nd_error *cli_audit_report_json(const struct cli_audit *audit);

/* One report per namespace, and one for the cluster with namespace "". Calls take() with each. The
 * error: reports that would be too large were left out. */
[[nodiscard]] struct nd_error *cli_audit_policy_reports(const struct cli_audit *audit,
                                                        void (*take)(const char *namespace, const char *json, void *userdata),
                                                        void *userdata);
[[nodiscard]] struct nd_error *cli_audit_print_policy_reports(const struct cli_audit *audit);
/* Applies them to the cluster, and removes reports of namespaces that have none any more. */
[[nodiscard]] struct nd_error *cli_audit_publish(struct cli_audit *audit);
