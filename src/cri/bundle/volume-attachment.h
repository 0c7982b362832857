/* SPDX-License-Identifier: Apache-2.0 */
/* volume-attachment.h - volumes, attached on the host's side before the OCI runtime copies the mount namespace
 *
 * A flag that the OCI runtime sets on a mount in the container's namespace can be cleared there with SYS_ADMIN, and root of a pod may have that in its user
 * namespace. What is mounted when the namespace is copied for the user namespace has its flags locked by the kernel (tests/kernel/locked-mounts.c). So
 * with users of its own a container's volumes are attached below its root filesystem here, and the OCI runtime is given none of them:
 *      mounts            a mount over itself, private: nothing in it is seen elsewhere, and one unmount takes all of it away
 *      mounts/rootfs     the root filesystem with the volumes below it: what the OCI runtime is to use; only with a user namespace
 *      mounts/<number>   a volume that the OCI runtime is to bind: with the host's users all of them, otherwise those in /dev, /proc and /sys, which the OCI runtime
 *                        mounts itself, those with mount propagation, since the OCI runtime makes the root and all below it private, and what lies in one of these
 * All of it is in the container's directory and is taken away as soon as the container is made, which has copies: the host's mount table does not grow. */
#pragma once

#include "cri/bundle/volumes.h"

struct cri_volume_attachment {
        char *directory; /* the container's; nullptr = nothing was begun */
        int userns;      /* -EBADF = the host's users */
        int place;       /* mounts/ */
        int root;        /* mounts/rootfs; -EBADF = the OCI runtime mounts everything itself */
        bool refuses;    /* read-only volumes that the OCI runtime would have to mount */
        bool sys;        /* the host's /sys is attached */
        struct nd_strings
                covered; /* where the OCI runtime binds a volume, behind all links: what is attached there before would not be seen */
        struct cri_declared_volumes
                declared; /* those that the OCI runtime is to bind; what they point to is in the caller's list */
        bool read_only;   /* a volume that is */
};
#define ATTACHMENT_NONE ((struct cri_volume_attachment) {.userns = -EBADF, .place = -EBADF, .root = -EBADF})
void cri_volume_attachment_done(struct cri_volume_attachment *attachment);

/* For workers in the host's mount namespace, all of them. root is the root filesystem, as a detached mount; with a user namespace it is attached and another one
 * takes its place in *root, without anything below it. */
[[nodiscard]] struct nd_error *cri_volume_attachment_begin(struct cri_volume_attachment *attachment, const char *directory,
                                                           int userns, int *root);

/* The host's /sys without what is mounted in it, read-only, as a mount that the container cannot look behind. Sets .sys, unless mounts in /sys are locked for us too. */
[[nodiscard]] struct nd_error *cri_volume_attachment_add_sys(struct cri_volume_attachment *attachment);

/* Attaches the volumes. Those that the OCI runtime is to bind have a source afterwards, or are in .declared. */
[[nodiscard]] struct nd_error *cri_volume_attachment_add_volumes(struct cri_volume_attachment *attachment,
                                                                 const struct cri_container_request *request,
                                                                 const struct cri_volumes *found,
                                                                 const struct cri_declared_volumes *declared);

/* Makes the root read-only where it is to be, once there is a place for everything that the spec mounts and for the working directory. ND_INVALID where one would
 * have to be made in a read-only volume. */
[[nodiscard]] struct nd_error *cri_volume_attachment_finish(struct cri_volume_attachment *attachment,
                                                            const struct nd_spec *spec);

/* The root that the OCI runtime is to use. The caller's to free. */
[[nodiscard]] char *cri_volume_attachment_root(const struct cri_volume_attachment *attachment, const char *directory);

/* For workers: takes all of it away. Of what is not there, nothing is said. */
[[nodiscard]] struct nd_error *cri_volume_attachment_undo(const char *directory);
