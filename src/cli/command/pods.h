/* SPDX-License-Identifier: Apache-2.0 */
/* pods.h - `nodens pods`: lists the pods of nodens-cri */
#pragma once

#include "base/option.h"

struct cli_pods_settings {
        const char *socket;
        bool json;
};

extern const struct nd_option cli_pods_options[];
int cli_pods_run(void *settings, int operand_count, char **operands);
