/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h - `nodens exec`: runs a command in a container, also without a kubelet */
#pragma once

#include "base/option.h"

struct cli_exec_settings {
        const char *socket;
        const char *container;
        bool input;
        bool terminal;
};

extern const struct nd_option cli_exec_options[];
int cli_exec_run(void *settings, int operand_count, char **operands);
