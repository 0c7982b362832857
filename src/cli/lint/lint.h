/* SPDX-License-Identifier: Apache-2.0 */
/* lint.h - the state of a `nodens lint` run, for its own modules
 *
 *      read.c      files into subjects                expect.c              compares with expected results
 *      evaluate.c  a subject's levels and constraints  report.c, sarif.c     prints the results */
#pragma once

#include "base/vector.h"
#include "kube/workload.h"
#include "policy/advice.h"
#include "policy/scc.h"

enum cli_lint_side {              /* a pod is judged twice, whatever it says of itself */
                     LINT_HOST,   /* with the host's users */
                     LINT_USERNS, /* with a user namespace of its own */
                     LINT_SIDES,
};

struct cli_lint_result {
        const char *obstacle; /* why it cannot be: a field; "" = it can */
        enum nd_podsecurity_level level;
        const char *constraint; /* nullptr: none takes the pod */
        bool everybody;         /* it needs no grant */
        const char *refusal;    /* of those that everybody may use; nullptr where one took the pod */
};

struct cli_lint_subject {
        const char *file;
        size_t line;
        struct nd_workload workload;
        enum cli_lint_side own; /* what the manifest asks for */
        struct cli_lint_result sides[LINT_SIDES];
        const char *invalid; /* what the API server would say about hostUsers; "" = nothing */
        enum nd_podsecurity_level target;
        struct nd_podsecurity_findings findings; /* against the target, of the manifest as it is */
        struct nd_advice advice;
        nd_vector(const char *) broken; /* expectations */
};

struct cli_lint_cluster;

struct cli_lint {
        struct nd_arena arena;
        struct nd_kube_version version;
        bool host_network;
        bool has_level; /* one was demanded */
        enum nd_podsecurity_level level;
        struct cli_lint_cluster *cluster; /* a cluster that is asked; nullptr: none */
        nd_vector(const struct nd_scc *) sccs;
        struct nd_scc_set set; /* of these, made when the first pod is judged */
        nd_vector(struct cli_lint_subject) subjects;
        nd_vector(const char *) broken; /* expectations of subjects that are not there */
};

/* Adds the pods of a file, "-" being standard input. Objects that make none are passed over. */
[[nodiscard]] struct nd_error *cli_lint_read(struct cli_lint *lint, const char *path);
/* Constraints in place of the default ones. */
[[nodiscard]] struct nd_error *cli_lint_read_constraints(struct cli_lint *lint, const char *path);

void cli_lint_evaluate(struct cli_lint *lint, struct cli_lint_subject *subject);
[[nodiscard]] struct nd_error *cli_lint_expect(struct cli_lint *lint, const char *path);

/* Below the demanded level, not valid, or not as expected. */
bool cli_lint_is_bad(const struct cli_lint *lint, const struct cli_lint_subject *subject);

void cli_lint_report_text(const struct cli_lint *lint);
void cli_lint_report_json(const struct cli_lint *lint);
void cli_lint_report_sarif(const struct cli_lint *lint);

enum {
        LINT_BYTES = 16 << 20, /* of one file */
        LINT_SUBJECTS = 100000,
};

/* A whole file or standard input. */
[[nodiscard]] struct nd_error *cli_lint_file(const char *path, char **ret, size_t *ret_length);
