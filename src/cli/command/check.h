/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - `nodens check`: checks whether a node supports pods with user namespaces */
#pragma once

#include "base/option.h"

struct cli_check_settings {
        bool json;
        bool rootless;
        const char *directory;
        const char *kubelet_config;
        const char *socket;
};

extern const struct nd_option cli_check_options[];
int cli_check_run(void *settings, int operand_count, char **operands);
