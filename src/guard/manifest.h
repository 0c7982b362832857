/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - nodens-guard manifest */
#pragma once

#include "base/option.h"

struct guard_manifest_settings {
        const char *config, *namespace, *service, *url, *ca_file;
        const char *kubeconfig, *client_certificate, *client_key, *api_servers;
};

extern const struct nd_option guard_manifest_options[];
int guard_manifest_run(void *settings, int operand_count, char **operands);
