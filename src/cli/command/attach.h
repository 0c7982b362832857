/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - `nodens attach`: connects to the streams of a running container */
#pragma once

#include "base/option.h"

struct cli_attach_settings {
        const char *socket;
        const char *container;
        bool input;
};

extern const struct nd_option cli_attach_options[];
int cli_attach_run(void *settings, int operand_count, char **operands);
