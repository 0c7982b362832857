/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.h - the mounts that the kubelet asks for
 *
 * What is on the host is looked at before the engine is: so that a person learns which volume, which path and which filesystem is to blame, and what
 * to do. A path may lie on a server that is gone: looking is for workers.
 *      exists        or it is an error; links are followed, as the CRI says, and the engine gets the path behind them
 *      idmapped      really tried, on a clone that nobody sees. With its submounts where all of them allow it; otherwise the submounts stay as they are. So do they
 *                    where our own directories are among them: the roots of containers are overlays, which come and go and cannot be mapped
 *      Bidirectional must be on a shared mount, and not in a user namespace, from where nothing comes back to the host
 *      recursive read-only  needs read-only and private propagation */
#pragma once

#include "cri/declared-volumes.h"
#include "cri/request.h"
#include "oci/spec.h"

struct cri_config;

/* What was found out about one of the request's mounts. */
struct volume {
        char *source;   /* behind all links; nullptr where an image is mounted */
        bool submounts; /* idmap these too */
};
typedef nd_vector(struct volume) volumes;
void volumes_done(volumes *list);

/* As many as the request has mounts. userns is the pod's, -EBADF = the host's users. */
[[nodiscard]] struct nd_error *volumes_look(const struct cri_config *config, const struct container_request *request,
                                            int userns, volumes *ret);

/* Adds them, and those that the image declares, to the spec: parents before what is mounted on them. */
void volumes_mount(const struct container_request *request, const volumes *found, const declared_volumes *declared,
                   struct nd_spec *spec);

/* A container's path without "//", "/./", "/../" and a slash at the end; absolute. The caller's to free. */
[[nodiscard]] char *volumes_clean_path(const char *path);

/* What a person calls the volume behind a host path: the name in the kubelet's path of it, or the path. Appends it, quoted. */
void volumes_name(const char *host_path, struct nd_text *ret);
