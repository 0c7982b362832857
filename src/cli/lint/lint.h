/* SPDX-License-Identifier: Apache-2.0 */
/* lint.h - the state of a `nodens lint` run, for its own modules
 *
 *      read.c              reads files into subjects
 *      evaluate.c          computes a subject's levels and constraints
 *      expect.c            compares with expected results
 *      report.c, sarif.c   print the results */
#pragma once

#include "base/vector.h"
#include "kube/workload.h"
#include "policy/advice.h"
#include "policy/scc.h"

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

struct cli_lint_subject {
        const char *file;
        size_t line;
        struct nd_workload workload;
        enum cli_lint_side own; /* as in the manifest */
        struct cli_lint_result sides[LINT_SIDES];
        const char *invalid; /* the API server's error about hostUsers; "" = none */
        enum nd_podsecurity_level target;
        /* against the target, for the manifest as written */
        struct nd_podsecurity_findings findings;
        struct nd_advice advice;
        nd_vector(const char *) broken; /* failed expectations */
};

struct cli_lint_cluster;

struct cli_lint {
        struct nd_arena arena;
        struct nd_kube_version version;
        bool host_network;
        bool has_level; /* a level is required */
        enum nd_podsecurity_level level;
        struct cli_lint_cluster *cluster; /* nullptr: offline */
        nd_vector(const struct nd_scc *) sccs;
        struct nd_scc_set set; /* made when the first pod is evaluated */
        nd_vector(struct cli_lint_subject) subjects;
        nd_vector(const char *) broken; /* expectations without a matching manifest */
};

/* Adds the pods of a file; "-" is standard input. Objects without pods are skipped. */
[[nodiscard]] struct nd_error *cli_lint_read(struct cli_lint *lint, const char *path);
/* Reads constraints to use instead of the defaults. */
[[nodiscard]] struct nd_error *cli_lint_read_constraints(struct cli_lint *lint, const char *path);

void cli_lint_evaluate(struct cli_lint *lint, struct cli_lint_subject *subject);
[[nodiscard]] struct nd_error *cli_lint_expect(struct cli_lint *lint, const char *path);

/* Below the required level, invalid, or not as expected. */
bool cli_lint_is_bad(const struct cli_lint *lint, const struct cli_lint_subject *subject);

void cli_lint_report_text(const struct cli_lint *lint);
void cli_lint_report_json(const struct cli_lint *lint);
void cli_lint_report_sarif(const struct cli_lint *lint);

enum {
        LINT_BYTES = 16 << 20, /* size limit of a file */
        LINT_SUBJECTS = 100000,
};

/* Reads a whole file or standard input. */
[[nodiscard]] struct nd_error *cli_lint_file(const char *path, char **ret, size_t *ret_length);
