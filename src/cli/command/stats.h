/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - `nodens stats`: shows the resource usage of pods and containers */
#pragma once

#include "base/option.h"

struct cli_stats_settings {
        const char *socket;
        bool json;
        bool pods;
};

extern const struct nd_option cli_stats_options[];
int cli_stats_run(void *settings, int operand_count, char **operands);
