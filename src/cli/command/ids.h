/* SPDX-License-Identifier: Apache-2.0 */
/* ids.h - `nodens ids`: shows the ID blocks of pods */
#pragma once

#include "base/option.h"

struct cli_ids_settings {
        bool json;
        const char *socket;
        const char *root;
        const char *kubelet_config;
};

extern const struct nd_option cli_ids_options[];
int cli_ids_run(void *settings, int operand_count, char **operands);
