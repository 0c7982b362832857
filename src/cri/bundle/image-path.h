/* SPDX-License-Identifier: Apache-2.0 */
/* image-path.h - where a path of an image leads to, before an OCI runtime follows it
 *
 * An OCI runtime opens some paths below the root filesystem before that is its root: /dev to make devices, and the destination of every mount. crun before 1.28 follows a link
 * at /dev out of the root (CVE-2026-47766). Mounts stay inside, but a link can move one to /proc, /sys or /dev, and processes believe what they find there (CVE-2019-16884);
 * at /dev the OCI runtime then makes devices in the volume, read-only or not. So no link of an image may lead there, whichever OCI runtime runs.
 *
 * Paths are walked name by name, with links read and not followed: what the image does not have is not there for the kernel to resolve, and is there once /proc is mounted. For workers. */
#pragma once

#include "oci/spec.h"

/* /proc, /sys, /dev and what is below; for clean paths. */
[[nodiscard]] bool cri_image_path_is_kernels(const char *path);

struct cri_image_path {
        char *resolved; /* clean, without links as far as the image has it */
        bool missing;   /* the image does not have it, or not all of it */
        bool dangling;  /* a link on the way leads to what the image does not have */
        char *kernels;  /* where the walk first came to /proc, /sys or /dev; nullptr = never */
};
void cri_image_path_done(struct cri_image_path *path);

/* Walks a path in a tree. ret is set on success only. */
[[nodiscard]] struct nd_error *cri_image_path_resolve(int tree, const char *path, struct cri_image_path *ret);

/* ND_INVALID where /proc, /sys or /dev of the tree is a link or something else than a directory, where a link moves a mount of the spec there, and where the OCI runtime would have to make
 * a mount point, a device or the working directory in a read-only volume. Looks into volumes as well. */
[[nodiscard]] struct nd_error *cri_image_path_check(int tree, const struct nd_spec *spec);
