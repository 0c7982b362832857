/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs.h - a container's root filesystem: an overlay on the image's layers
 *
 * In a user namespace the layers are idmapped: one clone of the store's directory of layers, mapped and attached only in the private mount
 * namespace of the worker that builds. What it hands back is one detached mount, and the host's mount table grows by one line. New files land in
 * upper/ with the pod's own IDs. `userxattr`, since the layers' marks are such; `volatile`, since an upper directory never outlives its boot. */
#pragma once

#include "base/error.h"
#include "oci/digest.h"

struct cri_build_mntns;

struct cri_rootfs_plan {
        const char *layers;             /* the store's directory of layers, absolute */
        const struct nd_digest *chains; /* lowest first; may be none */
        size_t count;
        const char *directory; /* the container's, absolute: upper/, work/ and the mount point rootfs/ are made there */
        int userns;            /* -EBADF = the host's users */
        uid_t uid;             /* the container's root, as the host sees it */
        gid_t gid;
        const char *label;                         /* SELinux's, of all its files; nullptr = none */
        const struct cri_build_mntns *build_mntns; /* where it is built; nullptr = in a copy of the caller's mount namespace */
};

/* For workers, which are where they were afterwards. ret_fd is the mount. */
[[nodiscard]] struct nd_error *cri_rootfs_build(const struct cri_rootfs_plan *plan, int *ret_fd);

/* Layers merged without a container's own, as a detached mount. It is an overlay without an upper directory, whatever the number of layers: its superblock cannot be
 * written, and no mount flag changes that. A clone of a layer would be one remount away from the node's only copy. */
struct cri_rootfs_merge_plan {
        const char *layers;
        const struct nd_digest *chains; /* lowest first; at least one */
        size_t count;
        const char *empty; /* an empty directory that stays empty, since the kernel makes no overlay of one lower directory */
        int userns;        /* -EBADF = the host's users */
};

/* For workers in a mount namespace of their own, where the layers are mapped over themselves. */
[[nodiscard]] struct nd_error *cri_rootfs_merge(const struct cri_rootfs_merge_plan *plan, int *ret_fd);

/* Attaches it at rootfs/: in the host's mount namespace, so not from the same worker. */
[[nodiscard]] struct nd_error *cri_rootfs_attach(int tree, const char *directory);

/* For workers: unmounts and removes all that was made. Of what is not there, nothing is said. */
[[nodiscard]] struct nd_error *cri_rootfs_undo(const char *directory);
