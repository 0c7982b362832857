/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - `nodens inspect`: which IDs a pod has, where its namespaces are, what its containers see, and whether that is what was promised */
#pragma once

#include "base/option.h"

struct cli_inspect_settings {
        const char *socket;
};

extern const struct nd_option cli_inspect_options[];
int cli_inspect_run(void *settings, int operand_count, char **operands); /* 0, 1 for an error, 2 when a check has failed */
