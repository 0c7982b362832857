/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - `nodens audit`: what relies on user namespaces in a cluster, and what could have one */
#pragma once

#include "base/option.h"

struct cli_audit_settings {
        bool json;
        bool policy_report;
        bool apply;
        bool workloads;
        bool host_network;
        const char *kubeconfig;
        const char *node;
        const char *minimum;
        const char *images;
        uint32_t timeout_s;
};

extern const struct nd_option cli_audit_options[];
int cli_audit_run(void *settings, int operand_count, char **operands);
