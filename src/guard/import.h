/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - nodens-guard import: OpenShift's constraints for the guard */
#pragma once

#include "base/option.h"

struct guard_import_command {
        const char *config;
        bool all;
        bool json;
};

extern const struct nd_option guard_import_options[];
int guard_import_run(void *settings, int operand_count, char **operands);
