/* SPDX-License-Identifier: Apache-2.0 */
/* rootless.h - what an ordinary user needs to run a whole node; the part of `nodens check` behind --rootless */
#pragma once

#include "cli/check/findings.h"

void cli_rootless_check(struct cli_findings *findings);
