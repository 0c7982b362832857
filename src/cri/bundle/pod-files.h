/* SPDX-License-Identifier: Apache-2.0 */
/* pod-files.h - the small files that every container of a pod sees, and the pod's /dev/shm
 *
 * One tmpfs per pod at <run>/pods/<sandbox>/files, owned by the pod's root, of a bounded size: whatever the containers write there is theirs. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;

enum cri_pod_file {
        POD_HOSTNAME, /* for /etc/hostname */
        POD_HOSTS,    /* for /etc/hosts, where the kubelet gives none */
        POD_RESOLV,   /* for /etc/resolv.conf */
        POD_SHM,      /* a directory, for /dev/shm; the host's own where the pod shares the host's IPC */
};

/* The source to bind from; the caller's to free. */
[[nodiscard]] char *cri_pod_files_path(const struct cri_config *config, const struct cri_sandbox *sandbox,
                                       enum cri_pod_file which);

/* Refuses what would write lines of its own into a file (ND_INVALID). */
[[nodiscard]] struct nd_error *cri_pod_files_check(const struct cri_sandbox_request *request);

/* These block, and are for workers. */
[[nodiscard]] struct nd_error *cri_pod_files_make(const struct cri_config *config, const struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_pod_files_undo(const struct cri_config *config, const struct cri_sandbox *sandbox);
