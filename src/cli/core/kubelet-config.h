/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet-config.h - ID settings of the kubelet's configuration */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define KUBELET_ROOT "/var/lib/kubelet"
#define KUBELET_CONFIG "/var/lib/kubelet/config.yaml"

struct cli_kubelet_config {
        uint32_t ids_per_pod;
        uint32_t max_pods;
        bool found; /* false: no file, these are the defaults */
};

/* Reads a KubeletConfiguration. path nullptr = kubeadm's path, where it may be missing. */
[[nodiscard]] struct nd_error *cli_kubelet_config_read(const char *path, struct cli_kubelet_config *ret);

/* The same from text, for tests and the fuzzer. */
[[nodiscard]] struct nd_error *cli_kubelet_config_parse(const char *text, size_t length, struct cli_kubelet_config *ret);
