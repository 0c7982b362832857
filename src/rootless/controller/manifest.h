/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - the objects that a cluster needs for nodes without root, as YAML
 *
 * Service accounts and rights of the controller and of kube-proxy, and on request a policy that
 * removes sysctls which nodes without root refuse. */
#pragma once

#include "base/option.h"
#include "base/text.h"

/* As given on the command line; unset ones are nullptr or false. */
struct rootless_manifest_settings {
        const char *namespace; /* default nodens-system */
        const char *node_name; /* nullptr: the rights concern all nodes */
        const char *user;      /* gets the rights of the controller, besides the service account */
        const char *label;     /* as of the controller */
        bool ingress;
        const char *strip_sysctls; /* nullptr: no policy */
};
extern const struct nd_option rootless_manifest_options[];

[[nodiscard]] struct nd_error *rootless_manifest_write(const struct rootless_manifest_settings *settings,
                                                       struct nd_text *text);
