/* SPDX-License-Identifier: Apache-2.0 */
/* pods.h - `nodens pods`: lists the pods of nodens-cri */
#pragma once

#include <nodens.pb-c.h>

#include "base/option.h"

struct cli_pods_settings {
        const char *socket;
        bool json;
};

extern const struct nd_option cli_pods_options[];

/* Formats the running containers of all, "2/3". Only the newest attempt of each container counts.
 * The caller frees it. */
[[nodiscard]] char *cli_pods_running(const Nodens__V1__PodEntry *pod);

int cli_pods_run(void *settings, int operand_count, char **operands);
