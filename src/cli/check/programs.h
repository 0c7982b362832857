/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - the programs that nodens needs: installed, new enough, not a version known to be broken */
#pragma once

#include "cli/check/findings.h"

struct cli_version {
        unsigned parts[3];
};

/* The first thing in a text that looks like a version: "crun version 1.21" and "pasta 0.0~git20250503" both give one. */
[[nodiscard]] bool cli_version_find(const char *text, struct cli_version *ret);
int cli_version_compare(const struct cli_version *a, const struct cli_version *b);

void cli_programs_check(struct cli_findings *findings);          /* what every node needs */
void cli_programs_check_rootless(struct cli_findings *findings); /* what a node of an ordinary user needs besides */
