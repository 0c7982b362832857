/* SPDX-License-Identifier: Apache-2.0 */
/* rm.h - `nodens rm`: stops and removes pods on a node without a kubelet */
#pragma once

#include "base/option.h"

struct cli_rm_settings {
        const char *socket;
        const char *grace;
        bool force;
        bool all;
};

extern const struct nd_option cli_rm_options[];
int cli_rm_run(void *settings, int operand_count, char **operands);
