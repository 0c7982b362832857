/* SPDX-License-Identifier: Apache-2.0 */
/* rmi.h - `nodens rmi`: removes images */
#pragma once

#include "base/option.h"

struct cli_rmi_settings {
        const char *socket;
        bool force;
        bool unused;
};

extern const struct nd_option cli_rmi_options[];
int cli_rmi_run(void *settings, int operand_count, char **operands);
