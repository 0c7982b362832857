/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.h - what a container stands on: its directory, its root filesystem and its config.json
 *
 * All of it is made by one worker, which looks at whatever may block or was written by strangers (volumes, the image's users, devices) and hands back the root
 * filesystem as a detached mount. The spec comes from the request and the image's config alone; no label or annotation has a way into it. */
#pragma once

#include "cri/bundle/image-volumes.h"
#include "cri/bundle/user.h"
#include "cri/core/pod-table.h"
#include "cri/namespace/namespaces.h"
#include "oci/config.h"

struct cri_config;
struct cri_build_mntns;

/* What the worker tells beside its error: lies in memory that both see. */
struct cri_bundle_report {
        uint32_t uid, gid;
        uint32_t group_count;
        uint32_t groups[USER_GROUPS_MOST];
};

struct cri_bundle_plan {
        const struct cri_config *config;
        const struct cri_container *container;
        const struct nd_oci_config *image; /* nullptr for the pod's init */
        const char *layers;
        const struct nd_digest *chains; /* lowest first */
        size_t chain_count;
        const struct cri_image_volumes *volumes;
        const char *namespaces[POD_NAMESPACES]; /* by enum cri_pod_namespace: where to join, nullptr = the host's */
        const char *pid;                        /* likewise; "" = a new one */
        const char *hostname, *hosts, *resolv, *shm;
        struct cri_bundle_report *report;
        const struct cri_build_mntns *build_mntns;
};

/* An nd_worker_function; argument is a plan. ret_fd is the root filesystem. */
[[nodiscard]] struct nd_error *cri_bundle_make(void *argument, int *ret_fd);

/* For workers: all that cri_bundle_make() and the attaching of the root have left in a container's directory. */
[[nodiscard]] struct nd_error *cri_bundle_undo(const char *directory);
