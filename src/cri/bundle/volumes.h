/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.h - the mounts that the kubelet requests
 *
 * Host paths are checked before the OCI runtime runs, so that an error names the volume, the path
 * and the filesystem, and a solution. A path may be on a server that does not respond: only workers
 * open it. A path is followed once. Its descriptor is then checked, cloned and mapped, and attached
 * by volume-attachment.c: replacing the path by a link afterwards has no effect.
 *      existence       missing paths are an error; links are followed, as the CRI requires, except
 *                      magic links of /proc, which lead to descriptors and roots of processes
 *      idmapping       on our own clone. With its submounts if all of them support it, otherwise
 *                      without. Also without if our own directories are among them: the roots of
 *                      containers are overlays, which come and go and cannot be mapped. In a
 *                      rootless node, files that belong to the pod get its IDs if they cannot be
 *                      mapped (pod-volumes.h). Elsewhere nodens-bridge serves such a volume, if the
 *                      configuration allows it (bridge.h)
 *      Bidirectional   needs a shared mount and no user namespace, from which nothing propagates to
 *                      the host
 *      recursive ro    needs read-only and private propagation */
#pragma once

#include "cri/bundle/declared-volumes.h"
#include "cri/core/pod-table.h"
#include "oci/spec.h"

struct cri_bridge_counts;
struct cri_config;

/* State of one of the request's mounts. */
struct cri_volume {
        /* on the host, links resolved; for messages. nullptr if an image is mounted */
        char *path;
        char *source;   /* path for the OCI runtime to bind; nullptr = none, or not yet */
        int file;       /* the opened path, O_PATH */
        int tree;       /* a mapped clone of it, not yet attached */
        bool submounts; /* submounts are mapped too */
        struct cri_mount_mapping mapping;
};
#define VOLUME_NONE ((struct cri_volume) {.file = -EBADF, .tree = -EBADF})
struct cri_volumes {
        struct cri_volume *items;
        size_t count;
        size_t capacity;
        struct cri_bridge_counts *bridges; /* nullptr = not counted */
};
void cri_volumes_done(struct cri_volumes *list);

/* ret has one entry per mount of the request. userns is the pod's, -EBADF = the host's users. */
[[nodiscard]] struct nd_error *cri_volumes_look(const struct cri_config *config, const struct cri_sandbox *sandbox,
                                                const struct cri_container_request *request, int userns,
                                                struct cri_volumes *ret);

/* Visits the mounts and the image's declared volumes, parents first; ends at the first error. */
struct cri_volume_visit {
        size_t index;                               /* index of the mount in the request */
        const struct cri_mount_request *mount;      /* nullptr for a declared volume */
        struct cri_volume *volume;                  /* likewise */
        const struct cri_declared_volume *declared; /* nullptr for a mount */
        const char *destination;                    /* normalized */
};
typedef struct nd_error *(*cri_volumes_visitor)(const struct cri_volume_visit *visit, void *userdata);
[[nodiscard]] struct nd_error *volumes_each(const struct cri_container_request *request, const struct cri_volumes *found,
                                            const struct cri_declared_volumes *declared, cri_volumes_visitor visit,
                                            void *userdata);

/* Adds the volumes that have a source to the spec, in that order. */
void volumes_mount(const struct cri_container_request *request, const struct cri_volumes *found,
                   const struct cri_declared_volumes *declared, struct nd_spec *spec);

/* Appends a readable name of the volume at a host path, quoted: the name in the kubelet's path,
 * or the path. */
void cri_volumes_name(const char *host_path, struct nd_text *ret);
