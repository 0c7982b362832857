/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet-config.h - what the kubelet's configuration says about IDs */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define KUBELET_ROOT "/var/lib/kubelet"
#define KUBELET_CONFIG "/var/lib/kubelet/config.yaml"

struct cli_kubelet_config {
        uint32_t ids_per_pod;
        uint32_t max_pods;
        bool found; /* false: no file, these are the kubelet's defaults */
};

/* Reads a KubeletConfiguration. path nullptr = where kubeadm puts it, and there it may be missing. */
[[nodiscard]] struct nd_error *cli_kubelet_config_read(const char *path, struct cli_kubelet_config *ret);

/* The same from text, for tests and the fuzzer. */
[[nodiscard]] struct nd_error *cli_kubelet_config_parse(const char *text, size_t length, struct cli_kubelet_config *ret);
