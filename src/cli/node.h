/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - what the kubelet's configuration says about IDs */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define NODE_KUBELET_ROOT "/var/lib/kubelet"
#define NODE_KUBELET_CONFIG "/var/lib/kubelet/config.yaml"

struct node_config {
        uint32_t ids_per_pod;
        uint32_t max_pods;
        bool found; /* false: no file, these are the kubelet's defaults */
};

/* Reads a KubeletConfiguration. path nullptr = where kubeadm puts it, and there it may be missing. */
[[nodiscard]] struct nd_error *node_config_read(const char *path, struct node_config *ret);

/* The same from text, for tests and the fuzzer. */
[[nodiscard]] struct nd_error *node_config_parse(const char *text, size_t length, struct node_config *ret);
