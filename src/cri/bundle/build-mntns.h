/* SPDX-License-Identifier: Apache-2.0 */
/* build-mntns.h - a mount namespace with little in it, in which root filesystems are built
 *
 * Who mounts something for a moment needs a mount namespace of its own, and the kernel makes one by copying the caller's: on a node with 1,000 pods thousands of
 * mounts, which are copied and torn down again for each container. In the build mount namespace there are a tmpfs, the store's layers and the pods' directories,
 * under the paths that they have on the host; a copy of it costs the same however many pods there are. */
#pragma once

#include "base/error.h"

struct cri_config;
struct cri_build_mntns;

/* layers is the store's directory of layers. The build mount namespace lives as long as the object: nothing of it is in any file system. */
[[nodiscard]] struct nd_error *cri_build_mntns_open(const struct cri_config *config, const char *layers,
                                                    struct cri_build_mntns **ret);
void cri_build_mntns_free(struct cri_build_mntns *build_mntns);

/* For workers: leaves the caller in a copy of the build mount namespace, or, where there is none (nullptr), of its own mount namespace. ret_home is the way back. */
[[nodiscard]] struct nd_error *cri_build_mntns_enter(const struct cri_build_mntns *build_mntns, int *ret_home);

/* For workers: back to where the caller was; closes the descriptor. To be used as a cleanup, it must not fail: who cannot go back ends, for whatever came next
 * would be done in the wrong place. */
void cri_build_mntns_leave(int *home);
