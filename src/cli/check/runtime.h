/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - checks what runs pods: nodens-cri, its network and files, and the kubelet above it */
#pragma once

#include "cli/check/findings.h"
#include "cli/check/kubelet.h"

/* socket nullptr = as configured. Waits for the daemon for a few seconds at most. */
void cli_runtime_check(struct cli_findings *findings, const char *socket, const struct cli_kubelet *kubelet);
