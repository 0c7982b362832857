/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - checks the programs that nodens needs: installed, new enough, no known broken
 * version */
#pragma once

#include "cli/check/findings.h"

struct cli_version {
        unsigned parts[3];
};

/* Finds the first version in a text, as in "crun version 1.21" and "pasta 0.0~git20250503". */
[[nodiscard]] bool cli_version_find(const char *text, struct cli_version *ret);
int cli_version_compare(const struct cli_version *a, const struct cli_version *b);

/* Returns the path of a program, or nullptr. Also searches the administrators' directories: a
 * user's PATH often has no sbin. */
[[nodiscard]] char *cli_program_find(const char *name);

void cli_programs_check(struct cli_findings *findings); /* for every node */
/* additionally for a rootless node */
void cli_programs_check_rootless(struct cli_findings *findings);
