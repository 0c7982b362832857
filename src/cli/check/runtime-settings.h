/* SPDX-License-Identifier: Apache-2.0 */
/* runtime-settings.h - the settings of nodens-cri that `nodens check` looks at
 *
 * A daemon that answers says which settings it uses. If none does, they are read from its
 * configuration, with the defaults of nodens-cri(8). */
#pragma once

#include <nodens.pb-c.h>

#include "base/error.h"

#define RUNTIME_CONFIG "/etc/nodens/cri.yaml"

struct cli_runtime_settings {
        char *socket;
        char *cni_config;
        char *cni_plugins; /* directories, separated by colons */
        char *seccomp_profile;
        char *certificates;
        char *cgroup_driver;
        char *bridge_helper;
        char *volumes; /* "bridge=auto,nfs4=caller": the bridge, then its rules */
};
void cli_runtime_settings_done(struct cli_runtime_settings *settings);

/* Sets the defaults and reads a configuration over them. Only checks what it reads: the daemon
 * reports the rest when it starts. A missing file is fine. */
[[nodiscard]] struct nd_error *cli_runtime_settings_read(const char *path, struct cli_runtime_settings *ret);
[[nodiscard]] struct nd_error *cli_runtime_settings_parse(const char *text, size_t length,
                                                          struct cli_runtime_settings *settings);
void cli_runtime_settings_init(struct cli_runtime_settings *ret);

/* Takes over what the daemon uses. */
void cli_runtime_settings_take(const Nodens__V1__InfoAnswer *info, struct cli_runtime_settings *settings);
