/* SPDX-License-Identifier: Apache-2.0 */
/* lint.h - the state of a `nodens lint` run, for its own modules
 *
 *      files.c             finds and reads files
 *      read.c              makes subjects of their objects
 *      evaluate.c          computes a subject's levels and constraints
 *      locate.c            finds the lines of fields
 *      expect.c            compares with expected results
 *      report.c, json.c, sarif.c   print the results */
#pragma once

#include "base/json-lines.h"
#include "base/vector.h"
#include "kube/workload.h"
#include "policy/advice.h"
#include "policy/scc.h"

enum {
        LINT_BYTES = 16 << 20,        /* size limit of a file */
        LINT_TOTAL_BYTES = 256 << 20, /* of all files */
        LINT_FILES = 10000,           /* in a directory, with those below it */
        LINT_DIRECTORIES = 32,        /* below each other */
        LINT_SUBJECTS = 100000,
        LINT_CAUSES = 50,       /* fields of a finding whose lines are sought */
        LINT_UNREADABLE = 1000, /* errors that are kept */
        LINT_KINDS = 1000,      /* kinds that are counted */
};

/* Every pod is evaluated twice, with any value of hostUsers in the manifest. */
enum cli_lint_side {
        LINT_HOST,   /* with the host's user namespace */
        LINT_USERNS, /* with a user namespace of its own */
        LINT_SIDES,
};

struct cli_lint_result {
        const char *obstacle; /* the field that makes it impossible; "" = possible */
        enum nd_podsecurity_level level;
        const char *constraint; /* nullptr: no constraint admits the pod */
        bool for_all_users;     /* no grant is needed */
        const char *refusal;    /* by constraints for all users; nullptr if one admitted the pod */
};

/* A field of an object, and the line of it or of the innermost object around it that exists. */
struct cli_lint_field {
        const char *path;
        size_t line;
};

struct cli_lint_fields {
        struct cli_lint_field *items;
        size_t count;
};

struct cli_lint_unknown {
        struct cli_lint_field field;
        const char *type;
        const char *suggestion; /* "" = none */
};

struct cli_lint_subject {
        const char *file;
        size_t line;
        struct nd_workload workload;
        enum cli_lint_side own; /* as in the manifest */
        struct cli_lint_result sides[LINT_SIDES];
        const char *invalid; /* the API server's error about containers or hostUsers; "" = none */
        const char *invalid_field;
        size_t invalid_line;
        enum nd_podsecurity_level target;
        /* against the target, for the manifest as written */
        struct nd_podsecurity_findings findings;
        struct cli_lint_fields causes[ND_PODSECURITY_CHECKS]; /* of each finding */
        struct nd_advice advice;
        size_t unknown_count;
        nd_vector(struct cli_lint_unknown) unknowns; /* the first of them */
        nd_vector(const char *) broken;              /* failed expectations */
};

struct cli_lint_cluster;

struct cli_lint_unreadable {
        const char *file;
        const char *error; /* begins with the file's name */
};

struct cli_lint_kind {
        const char *name;
        size_t count;
};

struct cli_lint {
        struct nd_arena arena;
        struct nd_kube_version version;
        bool host_network;
        bool has_level; /* a level is required */
        bool strict;    /* unknown fields are errors */
        bool recursive; /* into directories */
        enum nd_podsecurity_level level;
        struct cli_lint_cluster *cluster; /* nullptr: offline */
        nd_vector(const struct nd_scc *) sccs;
        struct nd_scc_set set; /* made when the first pod is evaluated */
        size_t bytes;          /* read so far */
        nd_vector(struct cli_lint_subject) subjects;
        nd_vector(struct cli_lint_unreadable) unreadable;
        nd_vector(struct cli_lint_kind) not_judged; /* objects of other kinds, sorted by name */
        nd_vector(const char *) broken;             /* expectations without a matching manifest */
};

/* Reads and evaluates the pods of a file, or of the manifests in a directory; "-" is standard
 * input. What cannot be read is noted, and objects without pods are counted. */
void cli_lint_read(struct cli_lint *lint, const char *path);
/* Reads constraints to use instead of the defaults. */
[[nodiscard]] struct nd_error *cli_lint_read_constraints(struct cli_lint *lint, const char *path);

/* Consumes the error, which has the name of the file. */
void cli_lint_note_unreadable(struct cli_lint *lint, const char *file, struct nd_error *error);

bool cli_lint_is_directory(const char *path);
/* Calls the function with each manifest of a directory, as kubectl chooses them: *.json, *.yaml and
 * *.yml, sorted. A link to a file is followed, one to a directory is not. */
void cli_lint_directory(struct cli_lint *lint, const char *path,
                        void (*take)(struct cli_lint *lint, const char *path, const char *bytes, size_t length));

/* An object and the text that it comes from. */
struct cli_lint_object {
        yyjson_doc *doc;
        const struct nd_json_lines *lines;
        yyjson_val *value;
        size_t line; /* where it begins */
};

/* The line of a field: "spec.containers[0].image", "metadata.annotations[a.b/c]". If it does not
 * exist, that of the innermost part of the path that does. */
size_t cli_lint_line(const struct cli_lint_object *object, const char *path);
/* Fills in the lines of what was found in a subject. */
void cli_lint_locate(struct cli_lint *lint, const struct cli_lint_object *object, struct cli_lint_subject *subject);

void cli_lint_evaluate(struct cli_lint *lint, struct cli_lint_subject *subject);
[[nodiscard]] struct nd_error *cli_lint_expect(struct cli_lint *lint, const char *path);

/* Below the required level, invalid, with unknown fields although they are errors, or not as
 * expected. */
bool cli_lint_is_bad(const struct cli_lint *lint, const struct cli_lint_subject *subject);
static inline bool cli_lint_has_containers(const struct cli_lint_subject *subject) {
        return subject->workload.pod.spec.containers.count > 0;
}

void cli_lint_report_text(const struct cli_lint *lint);
void cli_lint_report_json(const struct cli_lint *lint);
void cli_lint_report_sarif(const struct cli_lint *lint);
