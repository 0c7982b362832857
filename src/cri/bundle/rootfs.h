/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs.h - a container's root filesystem: an overlay on the image's layers
 *
 * In a user namespace the layers are idmapped: one clone of the store's directory of layers,
 * mapped and attached only in the private mount namespace of the worker. It returns one detached
 * mount, so the host's mount table grows by one line. New files are created in upper/ with the
 * pod's own IDs. In a rootless node that cannot idmap the store's filesystem the layers are shifted
 * copies instead (shifted-layers.h). `userxattr`, since the layers' overlay marks are user xattrs;
 * `volatile`, since an upper directory never outlives its boot. */
#pragma once

#include "base/error.h"
#include "oci/digest.h"
#include "sys/tree-copy.h"

struct cri_build_mntns;

struct cri_rootfs_plan {
        const char *layers;             /* the store's directory of layers, absolute */
        const struct nd_digest *chains; /* lowest first; may be none */
        size_t count;
        /* the container's, absolute: upper/, work/ and the mount point rootfs/ are made there */
        const char *directory;
        int userns; /* -EBADF = the host's users */
        uid_t uid;  /* the container's root, as the host sees it */
        gid_t gid;
        uint32_t ids;      /* of the user namespace */
        const char *label; /* SELinux label of all files; nullptr = none */
        /* where it is built; nullptr = in a copy of the caller's mount namespace */
        const struct cri_build_mntns *build_mntns;
};

/* For workers, which return to their mount namespace. ret_fd is the mount. */
[[nodiscard]] struct nd_error *cri_rootfs_build(const struct cri_rootfs_plan *plan, int *ret_fd);

/* Merged layers without a container's own, as a detached mount. It is always an overlay without
 * an upper directory: its superblock is read-only, and no mount flag can change that. A clone of
 * a single layer would be one remount away from modifying the node's only copy. */
struct cri_rootfs_merge_plan {
        const char *layers;
        const struct nd_digest *chains; /* lowest first; at least one */
        size_t count;
        /* a directory that stays empty: the kernel refuses an overlay with a single lower
         * directory */
        const char *empty;
        int userns;                 /* -EBADF = the host's users */
        struct nd_tree_shift shift; /* its IDs, if layers may be copied */
};

/* For workers in their own mount namespace, where the layers are mapped over themselves. */
[[nodiscard]] struct nd_error *cri_rootfs_merge(const struct cri_rootfs_merge_plan *plan, int *ret_fd);

/* A file of the image that belongs to root there, as nearly every one does, and its owner on the
 * host. nullptr = there is none. */
[[nodiscard]] const char *cri_rootfs_find_owner(int tree, uid_t *ret);

/* Attaches it at rootfs/, in the caller's mount namespace. */
[[nodiscard]] struct nd_error *cri_rootfs_attach(int tree, const char *directory);

/* For workers: unmounts and removes everything that was made. Missing mounts are no error. */
[[nodiscard]] struct nd_error *cri_rootfs_undo(const char *directory);
