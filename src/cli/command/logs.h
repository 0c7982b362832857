/* SPDX-License-Identifier: Apache-2.0 */
/* logs.h - `nodens logs`: what a container has said, from its log on this node */
#pragma once

#include "base/option.h"

struct cli_logs_settings {
        const char *socket;
        const char *container;
        const char *since;
        const char *tail;
        bool follow;
        bool timestamps;
        bool previous;
        bool raw;
};

extern const struct nd_option cli_logs_options[];
int cli_logs_run(void *settings, int operand_count, char **operands);

/* "90s", "10m", "2h", "1d" before now, or a time as RFC 3339 has it. False for anything else. */
[[nodiscard]] bool cli_logs_since(const char *text, uint64_t now, uint64_t *ret);
