/* SPDX-License-Identifier: Apache-2.0 */
/* port-forward.h - `nodens port-forward`: forwards local ports to a pod, also without a kubelet */
#pragma once

#include "base/option.h"

struct cli_port_forward_settings {
        const char *socket;
        const char *address;
};

extern const struct nd_option cli_port_forward_options[];
int cli_port_forward_run(void *settings, int operand_count, char **operands);
