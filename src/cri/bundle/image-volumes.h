/* SPDX-License-Identifier: Apache-2.0 */
/* image-volumes.h - volumes made of an image (KEP-4639)
 *
 * A volume is the image's merged layers, or a part of them, as a read-only overlay that is
 * mapped to the pod's IDs like its root filesystem. It is mounted at images/<number> in the
 * container's directory, from where the OCI runtime binds it; each adds one line to the host's
 * mount table. The image is untrusted: links in a part's path are resolved only inside the
 * image. */
#pragma once

#include "base/vector.h"
#include "cri/core/request.h"
#include "oci/digest.h"
#include "sys/tree-copy.h"

struct nd_oci_store;
struct cri_build_mntns;

struct cri_image_volume {
        size_t mount;             /* index of the request's mount */
        struct nd_digest *chains; /* of the image's layers, lowest first */
        size_t count;
};
struct cri_image_volumes {
        struct cri_image_volume *items;
        size_t count;
        size_t capacity;
};
void cri_image_volumes_done(struct cri_image_volumes *list);

/* Finds the images that the request mounts. ND_NOT_FOUND with the image's name if one is not
 * pulled. */
[[nodiscard]] struct nd_error *cri_image_volumes_find(struct nd_oci_store *store, const struct cri_container_request *request,
                                                      struct cri_image_volumes *ret);

struct cri_image_volumes_plan {
        const char *layers;         /* the store's directory of layers, absolute */
        const char *directory;      /* the container's, absolute */
        int userns;                 /* -EBADF = the host's users */
        struct nd_tree_shift shift; /* its IDs */
        /* where layers are merged; nullptr = in a copy of the caller's mount namespace */
        const struct cri_build_mntns *build_mntns;
};

/* For workers in the host's mount namespace, to which they return: makes and mounts them. */
[[nodiscard]] struct nd_error *cri_image_volumes_make(const struct cri_image_volumes_plan *plan,
                                                      const struct cri_container_request *request,
                                                      const struct cri_image_volumes *list);

/* Where one is mounted. The caller frees it. */
[[nodiscard]] char *cri_image_volumes_path(const char *directory, size_t mount);

/* For workers: unmounts and removes everything that was made. Missing mounts are no error. */
[[nodiscard]] struct nd_error *cri_image_volumes_undo(const char *directory);
