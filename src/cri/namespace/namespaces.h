/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces.h - a pod's namespaces: user, net, ipc and uts, without a process that holds them
 *
 * The request alone determines which namespaces a pod owns; the others are the host's. So nothing
 * about them is recorded:
 *      user    if the request has a mapping
 *      net     unless the pod uses the host's network
 *      ipc     unless the pod shares the host's
 *      uts     as net: a pod on the host's network has the host's name
 * The user namespace owns the others; their limits are charged to the pod's mapped root. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;
struct cri_pins;
struct nd_own_userns;

enum cri_pod_namespace {
        POD_USER,
        POD_NET,
        POD_IPC,
        POD_UTS,
        POD_NAMESPACES,
};

[[nodiscard]] bool cri_namespaces_owned(const struct cri_sandbox_request *request, enum cri_pod_namespace which);
/* "user", "net" ... as in /proc/<pid>/ns and in the OCI spec */
const char *cri_namespaces_name(enum cri_pod_namespace which);

/* Path of one of a READY sandbox's namespaces, to open while this daemon runs; nullptr = the
 * host's. The caller frees it. */
[[nodiscard]] char *cri_namespaces_path(const struct cri_config *config, const struct cri_pins *pins,
                                        const struct cri_sandbox *sandbox, enum cri_pod_namespace which);

/* Refuses sysctls that belong to no namespace or that the pod would set for the host
 * (ND_INVALID, with the name and the reason). */
[[nodiscard]] struct nd_error *cri_namespaces_check(const struct cri_sandbox_request *request);

/* The functions below block and run in workers. This one makes and pins all namespaces that the
 * pod owns, brings loopback up, and sets sysctls and host name. */
[[nodiscard]] struct nd_error *cri_namespaces_make(const struct cri_config *config, const struct nd_own_userns *users,
                                                   const struct cri_pins *pins, const struct cri_sandbox *sandbox);
/* Whether there are sysctls of interfaces that exist only after the network is set up. */
[[nodiscard]] bool cri_namespaces_have_late_sysctls(const struct cri_sandbox_request *request);
[[nodiscard]] struct nd_error *cri_namespaces_set_late_sysctls(const struct cri_config *config,
                                                               const struct cri_sandbox *sandbox);
/* Missing pins are no error. */
[[nodiscard]] struct nd_error *cri_namespaces_undo(const struct cri_config *config, const struct cri_pins *pins,
                                                   const struct cri_sandbox *sandbox);
