/* SPDX-License-Identifier: Apache-2.0 */
/* selinux.h - SELinux labels of containers, in builds with -Dselinux=true
 *
 * Labels are passed to the OCI runtime and to the mounts that are made for a container, and volumes get them where the kubelet asks for it. The types are those
 * of the container-selinux policy. Not tried on an enforcing kernel: Debian has no policy that labels containers. */
#pragma once

#include "cri/core/request.h"

struct cri_selinux_labels {
        char *process; /* "system_u:system_r:container_t:s0:c1,c2"; nullptr = none */
        char *mount;   /* "system_u:object_r:container_file_t:s0:c1,c2"; nullptr = none */
};
void cri_selinux_labels_done(struct cri_selinux_labels *labels);

/* Whether this build labels, and this kernel has SELinux. */
[[nodiscard]] bool cri_selinux_is_on(void);

/* The labels of a pod's container. What the request does not say comes from the policy's defaults; a level without categories would let all pods at each
 * other's files, so it is made of the pod's uid: the same for all its containers, across restarts, and another than most other pods'. */
[[nodiscard]] struct nd_error *cri_selinux_labels_of(const struct cri_container_request *request, const char *pod_uid,
                                                     struct cri_selinux_labels *ret);

/* Of what is made for the whole pod; the caller's to free. */
[[nodiscard]] struct nd_error *cri_selinux_pod_label(const struct cri_sandbox_request *pod, char **ret);

/* For workers: gives what a descriptor holds the label, with all that is in it, and follows no link. name is for messages. */
[[nodiscard]] struct nd_error *cri_selinux_relabel(int fd, const char *name, const char *label);
