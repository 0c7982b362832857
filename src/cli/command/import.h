/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - `nodens import`: imports images from an OCI archive */
#pragma once

#include "base/option.h"

struct cli_import_settings {
        const char *socket;
        bool quiet;
};

extern const struct nd_option cli_import_options[];
int cli_import_run(void *settings, int operand_count, char **operands);
