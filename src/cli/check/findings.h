/* SPDX-License-Identifier: Apache-2.0 */
/* findings.h - findings of a check, with advice */
#pragma once

#include "base/error.h"
#include "base/vector.h"

enum cli_finding_level {
        FINDING_OK,
        FINDING_NOTE, /* worth knowing; nothing is wrong */
        FINDING_WARN, /* works, with limitations or not for all users */
        FINDING_FAIL, /* pods with user namespaces will not run */
};

struct cli_finding {
        enum cli_finding_level level;
        const char *group; /* static */
        char *subject;
        char *found;
        char *advice; /* nullptr when nothing has to be done */
};

struct cli_findings {
        nd_vector(struct cli_finding) list;
        const char *group;   /* the group of the findings that follow */
        const char *subject; /* what was checked, for the last line; nullptr = "This node" */
        const char *purpose; /* what it was checked for; nullptr = "pods with user namespaces" */
};

/* The group of findings about the programs that run pods; all others are about the host. */
#define FINDINGS_RUNTIME "Runtime"

void cli_findings_done(struct cli_findings *findings);

/* Takes over found and advice, which nd_format() has allocated. */
void cli_findings_add(struct cli_findings *findings, enum cli_finding_level level, const char *subject, char *found,
                      char *advice);

/* Adds the result of a probe: ok with a text, or its error with advice. Takes over error and
 * good. */
void cli_findings_add_probe(struct cli_findings *findings, enum cli_finding_level when_bad, const char *subject,
                            struct nd_error *error, char *good, const char *advice);
enum cli_finding_level cli_findings_worst(const struct cli_findings *findings);

/* Prints all of them as a table or as JSON and returns the exit status: 0 usable, 1 degraded, 2
 * unusable. */
int cli_findings_report(const struct cli_findings *findings, bool json);
