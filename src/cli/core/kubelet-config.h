/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet-config.h - settings of the kubelet's configuration that concern nodens */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define KUBELET_ROOT "/var/lib/kubelet"
#define KUBELET_CONFIG "/var/lib/kubelet/config.yaml"

enum {
        KUBELET_ENDPOINT = 256, /* sizes of the texts below */
        KUBELET_DRIVER = 32,
};

struct cli_kubelet_config {
        uint32_t ids_per_pod;
        uint32_t max_pods;
        bool found; /* false: no file, these are the defaults */
        char endpoint[KUBELET_ENDPOINT];
        char cgroup_driver[KUBELET_DRIVER]; /* both are "" if not set */
        bool ignores_runtime;               /* does not ask the runtime for its cgroup driver */
};

/* What a kubelet uses if its configuration has no endpoint. */
#define KUBELET_ENDPOINT_DEFAULT "unix:///run/containerd/containerd.sock"

/* Reads a KubeletConfiguration. path nullptr = kubeadm's path, where it may be missing. */
void cli_kubelet_config_init(struct cli_kubelet_config *ret); /* the kubelet's defaults */
[[nodiscard]] struct nd_error *cli_kubelet_config_read(const char *path, struct cli_kubelet_config *ret);

/* The same from text, YAML or JSON, over what is in config already; found is set. */
[[nodiscard]] struct nd_error *cli_kubelet_config_parse(const char *text, size_t length, struct cli_kubelet_config *config);
