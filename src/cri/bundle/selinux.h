/* SPDX-License-Identifier: Apache-2.0 */
/* selinux.h - SELinux labels of containers, in builds with -Dselinux=true
 *
 * Labels are passed to the OCI runtime and to the mounts of a container; volumes are relabeled
 * if the kubelet requests it. The types are those of the container-selinux policy. Untested on
 * an enforcing kernel: Debian has no policy that labels containers. */
#pragma once

#include "cri/core/request.h"

struct cri_selinux_labels {
        char *process; /* "system_u:system_r:container_t:s0:c1,c2"; nullptr = none */
        char *mount;   /* "system_u:object_r:container_file_t:s0:c1,c2"; nullptr = none */
};
void cri_selinux_labels_done(struct cri_selinux_labels *labels);

/* Whether this build supports labels and this kernel has SELinux. */
[[nodiscard]] bool cri_selinux_is_on(void);

/* The labels of a pod's container. Parts missing in the request are the policy's defaults. A
 * level without categories would give all pods access to each other's files, so it is derived
 * from the pod's uid: the same for all its containers and across restarts, and different from
 * most other pods'. */
[[nodiscard]] struct nd_error *cri_selinux_labels_of(const struct cri_container_request *request, const char *pod_uid,
                                                     struct cri_selinux_labels *ret);

/* The label of files shared by the whole pod. The caller frees it. */
[[nodiscard]] struct nd_error *cri_selinux_pod_label(const struct cri_sandbox_request *pod, char **ret);

/* For workers: relabels the file behind a descriptor with everything below it; follows no links.
 * name is for messages. */
[[nodiscard]] struct nd_error *cri_selinux_relabel(int fd, const char *name, const char *label);
