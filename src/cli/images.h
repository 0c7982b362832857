/* SPDX-License-Identifier: Apache-2.0 */
/* images.h - `nodens images`, `nodens pull` and `nodens import` */
#pragma once

#include "base/option.h"

struct images_settings {
        bool json;
        const char *socket;
};

struct pull_settings {
        const char *socket;
        const char *credentials; /* a file with "user:password" */
        bool quiet;
};

extern const struct nd_option images_options[], pull_options[], import_options[];
int images_run(void *settings, int operand_count, char **operands);
int pull_run(void *settings, int operand_count, char **operands);
int import_run(void *settings, int operand_count, char **operands);
