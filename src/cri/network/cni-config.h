/* SPDX-License-Identifier: Apache-2.0 */
/* cni-config.h - parses a CNI network configuration and writes the input of its plugins
 *
 * Reads lists (.conflist) and single plugins (.conf), which count as a list of one. No I/O here. */
#pragma once

#include "cri/core/request.h"

struct cri_cni_plugin {
        char *type; /* name of the program */
        char *json; /* its configuration as it stands in the list */
        bool takes_ports, takes_dns, takes_bandwidth;
};

struct cri_cni_config {
        char *name;
        /* of the CNI specification that it was written for */
        char *version;
        nd_vector(struct cri_cni_plugin) plugins; /* at least one */
        bool disable_check;                       /* disableCheck: CHECK must not be run */
        /* the whole configuration on one line; parses to the same */
        char *source;
};

void cri_cni_config_done(struct cri_cni_config *config);
[[nodiscard]] struct nd_error *cri_cni_config_parse(const char *text, size_t length, struct cri_cni_config *ret);

/* Standard input of a plugin: its configuration with the list's name and version, the
 * runtimeConfig for its capabilities, and the result of the plugins before it (previous, JSON;
 * nullptr = none). The caller frees it. */
[[nodiscard]] struct nd_error *cri_cni_config_input(const struct cri_cni_config *config, size_t plugin,
                                                    const struct cri_sandbox_request *pod, const char *previous, char **ret);

/* Whether DEL of that version passes the result of ADD. */
[[nodiscard]] bool cri_cni_config_del_takes_result(const struct cri_cni_config *config);

/* Whether CHECK can be called: since version 0.4.0, unless disableCheck is set. */
[[nodiscard]] bool cri_cni_config_takes_check(const struct cri_cni_config *config);

enum {
        CNI_CONFIG_CEILING = 1 << 20,
        CNI_PLUGINS_MOST = 32,
};
