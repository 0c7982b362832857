/* SPDX-License-Identifier: Apache-2.0 */
/* rootless.h - `nodens check --rootless`: checks the requirements of a node of an ordinary user */
#pragma once

#include "cli/check/findings.h"

void cli_rootless_check(struct cli_findings *findings);
