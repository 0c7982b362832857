/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet.h - finds the node's kubelet and its configuration
 *
 * The arguments of the running kubelet say where its configuration is and override it. If none
 * runs, kubeadm's files say the same. */
#pragma once

#include <sys/types.h>

#include "cli/core/kubelet-config.h"

#define KUBELET_FLAGS "/var/lib/kubelet/kubeadm-flags.env"

/* The arguments that concern the runtime; nullptr if not given. */
struct cli_kubelet_arguments {
        char *config;        /* --config */
        char *drop_ins;      /* --config-dir */
        char *endpoint;      /* --container-runtime-endpoint */
        char *cgroup_driver; /* --cgroup-driver */
};
void cli_kubelet_arguments_done(struct cli_kubelet_arguments *arguments);

/* Parses arguments that are each followed by a null byte, as in /proc/PID/cmdline. */
void cli_kubelet_arguments_parse(const char *bytes, size_t length, struct cli_kubelet_arguments *ret);

struct cli_kubelet {
        pid_t pid;  /* 0 = none runs */
        char *path; /* of its configuration */
        struct cli_kubelet_config config;
        /* if the configuration cannot be used, and has the defaults instead */
        bool denied;   /* only root may read it */
        char *problem; /* nullptr = none */
};
void cli_kubelet_done(struct cli_kubelet *kubelet);

/* Finds the kubelet of this host; path nullptr = as its arguments say. A configuration that cannot
 * be used is an error only if a path was given. */
[[nodiscard]] struct nd_error *cli_kubelet_find(const char *path, struct cli_kubelet *ret);
