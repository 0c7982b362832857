/* SPDX-License-Identifier: Apache-2.0 */
/* complete.h - `nodens complete`: names of pods, containers and images for the shells' completions
 *
 * A shell may expand what it reads, and names come from other parties. So a name is printed only if
 * no shell interprets a character of it; the others must be typed. Prints nothing if nodens-cri
 * does not respond at once. */
#pragma once

#include "base/option.h"

struct cli_complete_settings {
        const char *socket;
};

extern const struct nd_option cli_complete_options[];
int cli_complete_run(void *settings, int operand_count, char **operands);
