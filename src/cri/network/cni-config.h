/* SPDX-License-Identifier: Apache-2.0 */
/* cni-config.h - a network configuration as CNI writes it, and what each of its plugins is told
 *
 * Reads lists (.conflist) and single plugins (.conf), which count as a list of one. No I/O here. */
#pragma once

#include "cri/core/request.h"

struct cri_cni_plugin {
        char *type; /* the program's name */
        char *json; /* its configuration as it stands in the list */
        bool takes_ports, takes_dns, takes_bandwidth;
};

struct cri_cni_config {
        char *name;
        char *version;                            /* of the specification that its author wrote it for */
        nd_vector(struct cri_cni_plugin) plugins; /* at least one */
        bool disable_check;                       /* its author does not want CHECK */
        char *source;                             /* all of it again, on one line; parses to the same */
};

void cri_cni_config_done(struct cri_cni_config *config);
[[nodiscard]] struct nd_error *cri_cni_config_parse(const char *text, size_t length, struct cri_cni_config *ret);

/* The plugin's standard input: its configuration with the list's name and version, with what it is capable of taking from the pod, and with what the plugins
 * before it made (previous, JSON; nullptr = nothing). The caller's to free. */
[[nodiscard]] struct nd_error *cri_cni_config_input(const struct cri_cni_config *config, size_t plugin,
                                                    const struct cri_sandbox_request *pod, const char *previous, char **ret);

/* Whether a plugin of that version is told at DEL what it made at ADD. */
[[nodiscard]] bool cri_cni_config_del_takes_result(const struct cri_cni_config *config);

/* Whether its plugins can be asked if what they made is still there: since version 0.4.0, unless the author says no. */
[[nodiscard]] bool cri_cni_config_takes_check(const struct cri_cni_config *config);

enum {
        CNI_CONFIG_CEILING = 1 << 20,
        CNI_PLUGINS_MOST = 32,
};
