/* SPDX-License-Identifier: Apache-2.0 */
/* filesystems.h - checks whether directories can hold volumes and image layers of pods with user
 * namespaces */
#pragma once

#include "cli/check/findings.h"

/* The directories of a node, and tmpfs. */
void cli_filesystems_check(struct cli_findings *findings);

/* One directory, which must exist. A filesystem that does not respond costs seconds. socket: of
 * nodens-cri, which has the settings of nodens-bridge; nullptr = as configured. */
[[nodiscard]] struct nd_error *cli_filesystems_check_directory(struct cli_findings *findings, const char *path,
                                                               const char *socket);
