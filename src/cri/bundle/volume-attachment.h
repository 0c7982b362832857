/* SPDX-License-Identifier: Apache-2.0 */
/* volume-attachment.h - attaches volumes before the OCI runtime copies its mount namespace
 *
 * With SYS_ADMIN, which the pod's root may have in its user namespace, a process can clear a flag
 * that the OCI runtime set on a mount in the container's mount namespace. The kernel locks the
 * flags of mounts that exist when the mount namespace is copied for a user namespace
 * (tests/kernel/locked-mounts.c). So for pods with a user namespace the volumes are attached below
 * the container's root filesystem here, and the OCI runtime does not mount them:
 *      mounts            a private mount of itself: invisible elsewhere, removed by one unmount
 *      mounts/rootfs     the root filesystem with the volumes below it, for the OCI runtime; only
 *                        with a user namespace
 *      mounts/<number>   a volume that the OCI runtime binds. With the host's users all of them.
 *                        With a user namespace: volumes in /dev, /proc and /sys, which the OCI
 *                        runtime mounts itself; volumes with mount propagation, since the OCI
 *                        runtime makes the root and all below it private; and volumes inside one of
 *                        these
 * All of it is in the container's directory, but mounted only in the OCI runtime's mount namespace
 * (runtime-mntns.h): the container has copies, and the host's mount table does not grow. */
#pragma once

#include "cri/bundle/volumes.h"

struct cri_volume_attachment {
        char *directory; /* the container's; nullptr = not begun */
        int userns;      /* -EBADF = the host's users */
        int place;       /* mounts/ */
        int root;        /* mounts/rootfs; -EBADF = the OCI runtime mounts everything itself */
        bool refuses;    /* refuse read-only volumes that the OCI runtime would have to mount */
        bool sys;        /* the host's /sys is attached */
        /* Resolved paths where the OCI runtime binds a volume: an earlier mount below them would
         * be hidden. */
        struct nd_strings covered;
        /* Volumes that the OCI runtime binds. The caller's list owns the strings. */
        struct cri_declared_volumes declared;
        bool read_only; /* there is a read-only volume */
};
#define ATTACHMENT_NONE ((struct cri_volume_attachment) {.userns = -EBADF, .place = -EBADF, .root = -EBADF})
void cri_volume_attachment_done(struct cri_volume_attachment *attachment);

/* The functions below are for workers in a mount namespace for the OCI runtime. root is the root
 * filesystem, as a detached mount; with a user namespace it is attached, and *root becomes a
 * clone of it without submounts. */
[[nodiscard]] struct nd_error *cri_volume_attachment_begin(struct cri_volume_attachment *attachment, const char *directory,
                                                           int userns, int *root);

/* Attaches the host's /sys without its submounts, read-only, as a mount that the container
 * cannot uncover. Sets .sys, unless mounts in /sys are locked for us too. */
[[nodiscard]] struct nd_error *cri_volume_attachment_add_sys(struct cri_volume_attachment *attachment);

/* Attaches the volumes. Volumes that the OCI runtime binds then have a source, or are in
 * .declared. */
[[nodiscard]] struct nd_error *cri_volume_attachment_add_volumes(struct cri_volume_attachment *attachment,
                                                                 const struct cri_container_request *request,
                                                                 const struct cri_volumes *found,
                                                                 const struct cri_declared_volumes *declared);

/* Makes the root read-only if requested, after creating all mount points of the spec and the
 * working directory. ND_INVALID if one would have to be created in a read-only volume. */
[[nodiscard]] struct nd_error *cri_volume_attachment_finish(struct cri_volume_attachment *attachment,
                                                            const struct nd_spec *spec);

/* The root for the OCI runtime. The caller frees it. */
[[nodiscard]] char *cri_volume_attachment_root(const struct cri_volume_attachment *attachment, const char *directory);

/* For workers in the host's mount namespace: removes the directories, and what an older version
 * mounted there. Missing ones are no error. */
[[nodiscard]] struct nd_error *cri_volume_attachment_undo(const char *directory);
