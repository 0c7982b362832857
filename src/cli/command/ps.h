/* SPDX-License-Identifier: Apache-2.0 */
/* ps.h - `nodens ps`: lists the containers of nodens-cri */
#pragma once

#include "base/option.h"

struct cli_ps_settings {
        const char *socket;
        bool all;
        bool json;
};

extern const struct nd_option cli_ps_options[];
int cli_ps_run(void *settings, int operand_count, char **operands);
