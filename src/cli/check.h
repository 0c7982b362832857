/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - `nodens check`, a doctor for a node */
#pragma once

#include "base/option.h"

struct check_settings {
        bool json;
        bool rootless;
        const char *directory;
        const char *kubelet_config;
};

extern const struct nd_option check_options[];
int check_run(void *settings, int operand_count, char **operands);
