/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - `nodens info`: conditions, features and settings of nodens-cri */
#pragma once

#include "base/option.h"

struct cli_info_settings {
        const char *socket;
        bool json;
};

extern const struct nd_option cli_info_options[];
int cli_info_run(void *settings, int operand_count, char **operands);
