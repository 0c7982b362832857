/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - nodens-guard serve */
#pragma once

#include "base/option.h"
#include "guard/core/config.h"

struct guard_serve_settings {
        const char *config;
        bool check_config;
        bool debug;
};

extern const struct nd_option guard_serve_options[];
int guard_serve_run(void *settings, int operand_count, char **operands);
/* The same for another role; settings are those of guard_serve_options. */
int guard_serve_as(enum guard_role role, const struct guard_serve_settings *settings, int operand_count, char **operands);
