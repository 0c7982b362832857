/* SPDX-License-Identifier: Apache-2.0 */
/* logs.h - `nodens logs`: prints a container's log from its file on this node */
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

/* Parses "90s", "10m", "2h", "1d" before now, or an RFC 3339 time. Returns false for anything
 * else. */
[[nodiscard]] bool cli_logs_since(const char *text, uint64_t now, uint64_t *ret);
