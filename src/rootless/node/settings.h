/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - settings of a node: options first, then the environment, then defaults
 *
 *      --net       NODENS_NET      pasta
 *      --mtu       NODENS_MTU      65520
 *      --data      NODENS_DATA     $XDG_DATA_HOME/nodens/NAME; none by default for `run`
 *      --bind      NODENS_BIND     nothing */
#pragma once

#include "base/option.h"
#include "base/text.h"
#include "rootless/network/netplan.h"

/* As given on the command line; unset ones are nullptr, 0 or false. */
struct rootless_settings {
        const char *name;
        const char *net;
        const char *data;
        const char *bind;
        const char *publish;
        uint32_t mtu;
        bool dry_run;
        bool foreground;
        bool json;
};

/* Validated and complete. */
struct rootless_config {
        char *name;
        enum rootless_net_driver net;
        uint32_t mtu;
        char *data; /* canonical once created; nullptr = none */
        char *bind; /* nullptr = none */
};
void rootless_config_done(struct rootless_config *config);

/* Looks up a variable; a function so that tests need not change their own environment. */
typedef const char *(*rootless_getenv)(const char *name, void *userdata);
[[nodiscard]] struct nd_error *rootless_config_resolve(const struct rootless_settings *settings, bool lasting,
                                                       rootless_getenv variable, void *userdata, struct rootless_config *ret);

/* Formats the settings that options or variables give as a file for EnvironmentFile= of the node's
 * units, so that a node that systemd starts has them too. Empty if there are none. */
[[nodiscard]] struct nd_error *rootless_settings_format(const struct rootless_settings *settings, rootless_getenv variable,
                                                        void *userdata, struct nd_text *ret);

/* Makes the environment of commands in the node: ours, without variables that name sockets or
 * directories of the host, plus RootlessKit's three variables. The list ends with a nullptr, which
 * it counts. */
[[nodiscard]] struct nd_strings rootless_config_environment(char *const *ours, const char *name, const char *api,
                                                            const char *uid, const char *gid);
