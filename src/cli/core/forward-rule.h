/* SPDX-License-Identifier: Apache-2.0 */
/* forward-rule.h - a port to forward: [LOCAL:]REMOTE */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct cli_forward_rule {
        uint16_t local; /* 0: the kernel chooses */
        uint16_t remote;
};

/* "8080:80"; "80" is the same port on both sides; ":80" and "0:80" let the kernel choose. */
[[nodiscard]] struct nd_error *cli_forward_rule_parse(const char *text, struct cli_forward_rule *ret);
