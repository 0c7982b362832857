/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.h - builds a container's directory, root filesystem and config.json
 *
 * One worker does all of it, since it opens paths that may block or have untrusted contents
 * (volumes, the image's users, devices). It returns the mount namespace for the OCI runtime
 * (runtime-mntns.h), with the root filesystem and the volumes in it. The spec depends only on the
 * request and the image's config; labels and annotations have no effect. */
#pragma once

#include "cri/bundle/bridge.h"
#include "cri/bundle/image-volumes.h"
#include "cri/bundle/user.h"
#include "cri/core/pod-table.h"
#include "cri/namespace/namespaces.h"
#include "oci/config.h"
#include "oci/layer.h"

struct cri_config;
struct cri_build_mntns;
struct cri_runtime_mntns;
struct nd_own_userns;

/* Results of the worker besides its error, in shared memory. */
#define CRI_BUNDLE_OWNER_ADVICE "build the image again with owners and groups below 65536, or run the pod with hostUsers: true"

struct cri_bundle_report {
        struct cri_bridge_counts bridges;
        uint32_t uid, gid;
        uint32_t group_count;
        uint32_t groups[USER_GROUPS_MOST];
        /* of cri_rootfs_find_owner(): a constant, which both processes have at the same address */
        const char *image_file;
        uid_t image_owner;
        bool oom_score_clamped; /* the kernel does not allow a score as low as requested */
        bool unmapped_owner;    /* the file of the plan's owner is in the root filesystem */
        size_t mapping_count;   /* 0 until the volumes are mapped, then one per mount */
        struct cri_mount_mapping mappings[];
};

struct cri_bundle_plan {
        const struct cri_config *config;
        const struct nd_own_userns *users;
        const struct cri_container *container;
        const struct nd_oci_config *image; /* nullptr for the pod's init */
        const char *layers;
        const struct nd_digest *chains; /* lowest first */
        size_t chain_count;
        const struct cri_image_volumes *volumes;
        /* the image's file whose owner or group the pod does not have, unless a layer hides it;
         * nullptr = none */
        const struct nd_layer_owner *owner;
        /* by enum cri_pod_namespace: path to join, nullptr = the host's */
        const char *namespaces[POD_NAMESPACES];
        const char *pid;   /* the same for PID; "" = a new one */
        const char *files; /* the pod's tmpfs, with these: */
        const char *hostname, *hosts, *resolv, *shm;
        struct cri_bundle_report *report;
        const struct cri_build_mntns *build_mntns;
        const struct cri_runtime_mntns *runtime_mntns;
};

/* An nd_worker_function; argument is a cri_bundle_plan. ret_fd is the mount namespace. */
[[nodiscard]] struct nd_error *cri_bundle_make(void *argument, int *ret_fd);

/* Size of the report for a request. */
[[nodiscard]] size_t cri_bundle_report_size(const struct cri_container_request *request);

/* Reads and converts a seccomp profile as for a container, to find errors early. */
[[nodiscard]] struct nd_error *cri_bundle_check_seccomp(const char *path);

/* For workers: the container's cgroup below the mount, as the engine was given it; nullptr = none.
 * Finds a container whose creation was interrupted before the engine reported it, also if it was
 * created with other settings. */
[[nodiscard]] struct nd_error *cri_bundle_cgroup(const char *directory, char **ret);

/* For workers: removes everything that cri_bundle_make() left in a container's directory, and the
 * mounts of older versions. */
[[nodiscard]] struct nd_error *cri_bundle_undo(const char *directory);
