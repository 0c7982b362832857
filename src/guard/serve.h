/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - nodens-guard serve */
#pragma once

#include "base/option.h"

struct guard_serve_settings {
        const char *config;
        bool check_config;
        bool debug;
};

extern const struct nd_option guard_serve_options[];
int guard_serve_run(void *settings, int operand_count, char **operands);
