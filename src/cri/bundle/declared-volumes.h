/* SPDX-License-Identifier: Apache-2.0 */
/* declared-volumes.h - volumes that an image's config declares (VOLUME in a Dockerfile)
 *
 * Each is a directory of the container, volumes/<number> beside its writable layer: writable even
 * if the root is not, no overlay, removed with the container. It starts with the image's contents
 * at that path. Owners are the pod's IDs on the host, as in the writable layer, so the mount needs
 * no mapping.
 *
 * The image is untrusted. Links on the way to a volume are followed only inside the image
 * (image-path.h), and the OCI runtime gets the resolved path. A volume that passes through
 * /proc, /sys or /dev is refused, since processes trust those files (CVE-2019-16884), and so is
 * one behind a dangling link. If the pod mounts something there or above, its mount takes
 * precedence: the contents of the pod's volumes are not known in advance. */
#pragma once

#include "base/vector.h"
#include "cri/core/request.h"
#include "oci/config.h"

struct cri_declared_volume {
        char *destination; /* in the container, normalized */
        char *source;      /* on the host */
};
struct cri_declared_volumes {
        struct cri_declared_volume *items;
        size_t count;
        size_t capacity;
};
void cri_declared_volumes_done(struct cri_declared_volumes *list);

struct cri_declared_volumes_plan {
        const struct nd_oci_config *image;
        const struct cri_container_request *request;
        const char *directory; /* the container's, absolute */
        int tree;              /* its root filesystem */
        uint32_t uid, gid;     /* the pod's root, on the host */
};

/* For workers. */
[[nodiscard]] struct nd_error *cri_declared_volumes_make(const struct cri_declared_volumes_plan *plan,
                                                         struct cri_declared_volumes *ret);

/* For workers: removes everything that was made. Missing files are no error. */
[[nodiscard]] struct nd_error *cri_declared_volumes_undo(const char *directory);
