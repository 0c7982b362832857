/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - `nodens pull`: pulls an image */
#pragma once

#include "base/option.h"

struct cli_pull_settings {
        const char *socket;
        const char *credentials; /* a file with "user:password" */
        bool quiet;
};

extern const struct nd_option cli_pull_options[];
int cli_pull_run(void *settings, int operand_count, char **operands);
