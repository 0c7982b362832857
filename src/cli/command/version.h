/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - `nodens version`: versions of this program and of nodens-cri */
#pragma once

#include "base/option.h"

struct cli_version_settings {
        const char *socket;
        bool json;
};

extern const struct nd_option cli_version_options[];
int cli_version_run(void *settings, int operand_count, char **operands);
