/* SPDX-License-Identifier: Apache-2.0 */
/* images.h - `nodens images`: lists the images of nodens-cri */
#pragma once

#include "base/option.h"

struct cli_images_settings {
        bool json;
        const char *socket;
};

extern const struct nd_option cli_images_options[];
int cli_images_run(void *settings, int operand_count, char **operands);
