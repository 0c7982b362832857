/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - bootstrap tokens of a control plane of the user's own */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct rootless_token_settings {
        const char *name;      /* of the node */
        const char *directory; /* of the control plane */
        uint32_t ttl;          /* seconds; 0 = the default */
};

/* Creates a token and prints the command with which another host joins. */
[[nodiscard]] struct nd_error *rootless_token_create(const struct rootless_token_settings *settings);
[[nodiscard]] struct nd_error *rootless_token_list(const struct rootless_token_settings *settings);
[[nodiscard]] struct nd_error *rootless_token_delete(const struct rootless_token_settings *settings, const char *id);
