/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces.h - a pod's namespaces: user, net, ipc and uts, without a process to hold them
 *
 * Which of them a pod owns follows from its request alone (what it does not own is the host's), so that nothing about it needs a record:
 *      user    where the request has a mapping
 *      net     unless the pod is on the host's network
 *      ipc     unless the pod shares the host's
 *      uts     with net: a pod on the host's network has the host's name
 * A user namespace owns the others; their limits are charged to the pod's mapped root. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;
struct cri_pins;

enum cri_pod_namespace {
        POD_USER,
        POD_NET,
        POD_IPC,
        POD_UTS,
        POD_NAMESPACES,
};

[[nodiscard]] bool cri_namespaces_owned(const struct cri_sandbox_request *request, enum cri_pod_namespace which);
const char *cri_namespaces_name(enum cri_pod_namespace which); /* "user", "net" ... as in /proc/<pid>/ns and in the OCI spec */

/* Where to join one of a READY sandbox's namespaces; nullptr = the host's. The caller's to free. Whoever joins opens it while this daemon lives. */
[[nodiscard]] char *cri_namespaces_path(const struct cri_config *config, const struct cri_pins *pins,
                                        const struct cri_sandbox *sandbox, enum cri_pod_namespace which);

/* Refuses sysctls that are not a namespace's own, or that the pod would set for the host (ND_INVALID, with the name and the reason). */
[[nodiscard]] struct nd_error *cri_namespaces_check(const struct cri_sandbox_request *request);

/* These block, and are for workers: makes and pins all that the pod owns, with loopback up, sysctls set and the host name given. */
[[nodiscard]] struct nd_error *cri_namespaces_make(const struct cri_config *config, const struct cri_pins *pins,
                                                   const struct cri_sandbox *sandbox);
/* Sysctls of interfaces that only the network brings; true when there are any. */
[[nodiscard]] bool cri_namespaces_have_late_sysctls(const struct cri_sandbox_request *request);
[[nodiscard]] struct nd_error *cri_namespaces_set_late_sysctls(const struct cri_config *config,
                                                               const struct cri_sandbox *sandbox);
/* Of what is not there, nothing is said. */
[[nodiscard]] struct nd_error *cri_namespaces_undo(const struct cri_config *config, const struct cri_pins *pins,
                                                   const struct cri_sandbox *sandbox);
