/* SPDX-License-Identifier: Apache-2.0 */
/* findings.h - what a check found, and what to do about it */
#pragma once

#include "base/vector.h"

enum finding_verdict {
        FINDING_OK,
        FINDING_NOTE, /* worth knowing; nothing is wrong */
        FINDING_WARN, /* works, but less well or not for everybody */
        FINDING_FAIL, /* pods with user namespaces will not run */
};

struct finding {
        enum finding_verdict verdict;
        const char *group; /* static */
        char *subject;
        char *found;
        char *advice; /* nullptr when there is nothing to do */
};

struct findings {
        nd_vector(struct finding) list;
        const char *group; /* the group of what is added next */
};

void findings_done(struct findings *findings);

/* Takes over found and advice, which are made by nd_format(). */
void findings_add(struct findings *findings, enum finding_verdict verdict, const char *subject, char *found, char *advice);

const char *finding_verdict_name(enum finding_verdict verdict);
enum finding_verdict findings_worst(const struct findings *findings);

/* Prints all of them, as a table for people or as JSON, and returns the exit code: 0 usable, 1 degraded, 2 unusable. */
int findings_report(const struct findings *findings, bool json);
