/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - `nodens inspect`: shows the IDs, namespaces and mounts of a pod, and whether they are
 * as requested */
#pragma once

#include "base/option.h"

struct cli_inspect_settings {
        const char *socket;
        bool json;
};

extern const struct nd_option cli_inspect_options[];
/* exit status: 0, 1 for an error, 2 for a failed check */
int cli_inspect_run(void *settings, int operand_count, char **operands);
