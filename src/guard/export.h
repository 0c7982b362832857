/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - nodens-guard export: the guard's rules as admission policies of the API server */
#pragma once

#include "base/option.h"

#define GUARD_EXPORT_WORDS "constraints|user-namespaces"

struct guard_export_command {
        const char *config;
        const char *namespace;
        bool json;
};

extern const struct nd_option guard_export_options[];
int guard_export_run(void *settings, int operand_count, char **operands);
