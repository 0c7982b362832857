/* SPDX-License-Identifier: Apache-2.0 */
/* runtime-mntns.h - the mount namespaces in which the OCI runtime creates containers
 *
 * An OCI runtime makes a container's mount namespace by copying its own, and unmounts what the
 * container must not see. In the host's mount namespace this costs more with each pod on the node.
 * So the OCI runtime runs in a mount namespace of its own for each container: the node's mounts
 * without those of pods, and the mounts of this container. It ends with the OCI runtime, and
 * nothing of it is visible in the host's mount table. */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct cri_config;
struct cri_runtime_mntns;

/* Makes the template that the others are copied from. It lives as long as the object. The
 * directories of the configuration must exist. */
[[nodiscard]] struct nd_error *cri_runtime_mntns_open(sd_event *loop, const struct cri_config *config,
                                                      struct cri_runtime_mntns **ret);
void cri_runtime_mntns_free(struct cri_runtime_mntns *template);

/* For workers: moves the caller into a new copy of the template, for good. ret_fd is the copy. */
[[nodiscard]] struct nd_error *cri_runtime_mntns_enter(const struct cri_runtime_mntns *template, int *ret_fd);

/* Directories in which pods have mounts, without links; nullptr = none. */
struct cri_runtime_mntns_places {
        char *run, *state, *netns;
};

/* The mount point of a line of mountinfo if the template must not contain it, else nullptr. The
 * caller frees it. */
[[nodiscard]] char *cri_runtime_mntns_excluded(const struct cri_runtime_mntns_places *places, const char *line);
