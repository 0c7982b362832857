/* SPDX-License-Identifier: Apache-2.0 */
/* engines.h - the programs that nodens drives: present, new enough, not a version known to be broken */
#pragma once

#include "cli/findings.h"

struct version {
        unsigned parts[3];
};

/* The first thing in a text that looks like a version: "crun version 1.21" and "pasta 0.0~git20250503" both give one. */
[[nodiscard]] bool version_find(const char *text, struct version *ret);
int version_compare(const struct version *a, const struct version *b);

void engines_check(struct findings *findings);          /* what every node needs */
void engines_check_rootless(struct findings *findings); /* what a node of an ordinary user needs besides */
