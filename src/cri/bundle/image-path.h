/* SPDX-License-Identifier: Apache-2.0 */
/* image-path.h - resolves paths of an image before an OCI runtime follows them
 *
 * An OCI runtime opens some paths below the root filesystem before that is its root: /dev to make
 * devices, and the destination of every mount. crun before 1.28 follows a link at /dev out of the
 * root (CVE-2026-47766). Mounts stay inside, but a link can move one to /proc, /sys or /dev, whose
 * files processes trust (CVE-2019-16884); at /dev the OCI runtime then makes devices in the volume,
 * read-only or not. So no link of an image may lead there, with any OCI runtime.
 *
 * Paths are walked name by name; links are read, not followed by the kernel: a path that does
 * not exist in the image now may exist once /proc is mounted. For workers. */
#pragma once

#include "oci/spec.h"

/* /proc, /sys, /dev and everything below; for normalized paths. */
[[nodiscard]] bool cri_image_path_is_kernels(const char *path);

struct cri_image_path {
        char *resolved; /* normalized; links are resolved as far as the path exists */
        bool missing;   /* the path does not fully exist in the image */
        bool dangling;  /* a link on the way has a missing target */
        char *kernels;  /* where the walk first reached /proc, /sys or /dev; nullptr = never */
};
void cri_image_path_done(struct cri_image_path *path);

/* Walks a path in a tree. ret is set on success only. */
[[nodiscard]] struct nd_error *cri_image_path_resolve(int tree, const char *path, struct cri_image_path *ret);

/* ND_INVALID if /proc, /sys or /dev of the tree is a link or another non-directory, if a link
 * moves a mount of the spec there, or if the OCI runtime would have to create a mount point, a
 * device or the working directory in a read-only volume. Opens paths in volumes too. */
[[nodiscard]] struct nd_error *cri_image_path_check(int tree, const struct nd_spec *spec);
