/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.h - checks whether nodens-bridge serves a directory that cannot be idmapped */
#pragma once

#include "cli/check/findings.h"
#include "cli/check/runtime-settings.h"

/* The settings that nodens-cri uses: of the daemon if it answers within seconds, else of its
 * configuration. socket nullptr = as configured. */
[[nodiscard]] struct nd_error *cli_bridge_settings(const char *socket, struct cli_runtime_settings *ret);

/* What keeps nodens-bridge from serving a filesystem of this type. */
struct cli_bridge_verdict {
        bool serves;
        char *found;  /* to be appended to the reason why it cannot be idmapped */
        char *advice; /* nullptr = use another filesystem */
};
void cli_bridge_verdict_done(struct cli_bridge_verdict *verdict);

/* @device: /dev/fuse. */
void cli_bridge_judge(const struct cli_runtime_settings *settings, const char *device, const char *filesystem,
                      struct cli_bridge_verdict *ret);
