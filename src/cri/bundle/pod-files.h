/* SPDX-License-Identifier: Apache-2.0 */
/* pod-files.h - the small files shared by all containers of a pod, and the pod's /dev/shm
 *
 * One tmpfs per pod at <run>/pods/<sandbox>/files, owned by the pod's root, of a bounded size:
 * the containers may write to it freely. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;

enum cri_pod_file {
        POD_HOSTNAME, /* for /etc/hostname */
        POD_HOSTS,    /* for /etc/hosts, if the kubelet mounts none */
        POD_RESOLV,   /* for /etc/resolv.conf */
        /* a directory, for /dev/shm; the host's own if the pod shares the host's IPC */
        POD_SHM,
};

/* The mount point of the tmpfs. The caller frees it. */
[[nodiscard]] char *cri_pod_files_directory(const struct cri_config *config, const struct cri_sandbox *sandbox);

/* The source to bind from. The caller frees it. */
[[nodiscard]] char *cri_pod_files_path(const struct cri_config *config, const struct cri_sandbox *sandbox,
                                       enum cri_pod_file which);

/* Refuses values that would add lines to a file (ND_INVALID). */
[[nodiscard]] struct nd_error *cri_pod_files_check(const struct cri_sandbox_request *request);

/* Both block: for workers. */
[[nodiscard]] struct nd_error *cri_pod_files_make(const struct cri_config *config, const struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_pod_files_undo(const struct cri_config *config, const struct cri_sandbox *sandbox);
