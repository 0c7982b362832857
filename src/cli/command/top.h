/* SPDX-License-Identifier: Apache-2.0 */
/* top.h - `nodens top`: live CPU and memory use */
#pragma once

#include "base/option.h"

struct cli_top_settings {
        const char *socket;
        bool pods;
        uint32_t interval;
        uint32_t count;
};

extern const struct nd_option cli_top_options[];
int cli_top_run(void *settings, int operand_count, char **operands);
