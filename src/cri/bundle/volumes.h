/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.h - the mounts that the kubelet asks for
 *
 * What is on the host is looked at before the OCI runtime is: so that a person learns which volume, which path and which filesystem is to blame, and what
 * to do. A path may lie on a server that is gone: looking is for workers. A path is followed once. What is found then is held by a descriptor, checked, cloned and
 * mapped by that, and attached by volume-attachment.c: a link that is put in the path's place afterwards leads nowhere.
 *      exists        or it is an error; links are followed, as the CRI says, except those of /proc that lead to descriptors and roots of processes
 *      idmapped      by a clone of our own. With its submounts where all of them allow it; otherwise the submounts stay as they are. So do they
 *                    where our own directories are among them: the roots of containers are overlays, which come and go and cannot be mapped
 *      Bidirectional must be on a shared mount, and not in a user namespace, from where nothing comes back to the host. Only these go to the OCI runtime by path
 *      recursive read-only  needs read-only and private propagation */
#pragma once

#include "cri/bundle/declared-volumes.h"
#include "cri/core/request.h"
#include "oci/spec.h"

struct cri_config;

/* What was found out about one of the request's mounts. */
struct cri_volume {
        char *path;     /* on the host, behind all links: to tell people. nullptr where an image is mounted */
        char *source;   /* what the OCI runtime is to bind; nullptr = nothing, yet or for good */
        int file;       /* what was found, O_PATH */
        int tree;       /* a clone of it, mapped, not attached yet */
        bool submounts; /* these are mapped too */
};
#define VOLUME_NONE ((struct cri_volume) {.file = -EBADF, .tree = -EBADF})
struct cri_volumes {
        struct cri_volume *items;
        size_t count;
        size_t capacity;
};
void cri_volumes_done(struct cri_volumes *list);

/* As many as the request has mounts. userns is the pod's, -EBADF = the host's users. */
[[nodiscard]] struct nd_error *cri_volumes_look(const struct cri_config *config, const struct cri_container_request *request,
                                                int userns, struct cri_volumes *ret);

/* Visits the mounts and what the image declares, parents before what is mounted on them; ends at the first error. */
struct cri_volume_visit {
        size_t index;                               /* of the mount in the request */
        const struct cri_mount_request *mount;      /* nullptr where the image declares it */
        struct cri_volume *volume;                  /* likewise */
        const struct cri_declared_volume *declared; /* nullptr where it is a mount */
        const char *destination;                    /* clean */
};
typedef struct nd_error *(*cri_volumes_visitor)(const struct cri_volume_visit *visit, void *userdata);
[[nodiscard]] struct nd_error *volumes_each(const struct cri_container_request *request, const struct cri_volumes *found,
                                            const struct cri_declared_volumes *declared, cri_volumes_visitor visit,
                                            void *userdata);

/* Adds to the spec those that have a source, in that order. */
void volumes_mount(const struct cri_container_request *request, const struct cri_volumes *found,
                   const struct cri_declared_volumes *declared, struct nd_spec *spec);

/* What a person calls the volume behind a host path: the name in the kubelet's path of it, or the path. Appends it, quoted. */
void cri_volumes_name(const char *host_path, struct nd_text *ret);
