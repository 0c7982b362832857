/* SPDX-License-Identifier: Apache-2.0 */
/* declared-volumes.h - volumes that an image's config declares (VOLUME in a Dockerfile)
 *
 * Each is a directory of the container's own, volumes/<number> beside its writable layer: writable even where the root is not, no overlay, gone with the container. It
 * begins with what the image has at that path. Owners are the pod's IDs on the host, as in the writable layer, so the mount needs no mapping.
 *
 * What an image says is not believed. Links on the way to a volume are followed inside of the image only (image-path.h), and the OCI runtime is given the path behind them; a volume that
 * comes by /proc, /sys or /dev is refused, since processes believe what they find there (CVE-2019-16884), and so is one behind a link to nothing. Where the pod mounts
 * something itself, there or above, that counts: what is in the pod's volumes is not known before. */
#pragma once

#include "base/vector.h"
#include "cri/core/request.h"
#include "oci/config.h"

struct cri_declared_volume {
        char *destination; /* in the container, clean */
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
        uint32_t uid, gid;     /* root of the pod, on the host */
};

/* For workers. */
[[nodiscard]] struct nd_error *cri_declared_volumes_make(const struct cri_declared_volumes_plan *plan,
                                                         struct cri_declared_volumes *ret);

/* For workers: removes all that was made. Of what is not there, nothing is said. */
[[nodiscard]] struct nd_error *cri_declared_volumes_undo(const char *directory);
