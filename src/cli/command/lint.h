/* SPDX-License-Identifier: Apache-2.0 */
/* lint.h - `nodens lint`: evaluates manifests against pod security levels and constraints */
#pragma once

#include "base/option.h"

struct cli_lint_settings {
        bool json;
        bool sarif;
        bool host_network;
        bool recursive;
        const char *level;
        const char *version;
        const char *constraints;
        const char *expect;
        const char *as;
        const char *namespace;
        const char *kubeconfig;
};

extern const struct nd_option cli_lint_options[];
int cli_lint_run(void *settings, int operand_count, char **operands);
