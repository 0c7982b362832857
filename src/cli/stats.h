/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - `nodens stats` and `nodens top`: what pods and containers use, once and again and again */
#pragma once

#include "base/option.h"

struct stats_settings {
        const char *socket;
        bool json;
        bool pods;
        uint32_t interval;
        uint32_t count;
};

extern const struct nd_option stats_options[];
extern const struct nd_option top_options[];
int stats_run(void *settings, int operand_count, char **operands);
int top_run(void *settings, int operand_count, char **operands);
