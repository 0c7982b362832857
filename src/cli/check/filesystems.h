/* SPDX-License-Identifier: Apache-2.0 */
/* filesystems.h - checks whether directories can hold volumes and image layers of pods with user
 * namespaces */
#pragma once

#include "cli/check/findings.h"

/* The directories of a node, and tmpfs. */
void cli_filesystems_check(struct cli_findings *findings);

/* One directory, which must exist. */
[[nodiscard]] struct nd_error *cli_filesystems_check_directory(struct cli_findings *findings, const char *path);
