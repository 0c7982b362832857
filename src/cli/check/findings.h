/* SPDX-License-Identifier: Apache-2.0 */
/* findings.h - findings of a check, with advice */
#pragma once

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
        const char *group; /* the group of the findings that follow */
};

void cli_findings_done(struct cli_findings *findings);

/* Takes over found and advice, which nd_format() has allocated. */
void cli_findings_add(struct cli_findings *findings, enum cli_finding_level level, const char *subject, char *found,
                      char *advice);

enum cli_finding_level cli_findings_worst(const struct cli_findings *findings);

/* Prints all of them as a table or as JSON and returns the exit status: 0 usable, 1 degraded, 2
 * unusable. */
int cli_findings_report(const struct cli_findings *findings, bool json);
