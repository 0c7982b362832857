/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - nodens-guard manifest */
#pragma once

#include "base/option.h"

#define GUARD_MANIFEST_PARTS                                                                                                                   \
        "crd|constraints|rbac|webhooks|network|admission|kubeconfig|guard-kubeconfig|deployment|nodes|authorization|authorization-kubeconfig|" \
        "authorizer"

struct guard_manifest_settings {
        const char *config, *namespace, *service, *url, *ca_file;
        const char *kubeconfig, *client_certificate, *client_key, *api_servers;
        const char *user, *server, *cluster_ca, *image, *client_ca_file;
        bool json;
};

extern const struct nd_option guard_manifest_options[];
int guard_manifest_run(void *settings, int operand_count, char **operands);
