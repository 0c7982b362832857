/* SPDX-License-Identifier: Apache-2.0 */
/* build-mntns.h - a small mount namespace in which root filesystems are built
 *
 * A temporary mount needs a mount namespace of its own, and the kernel makes one by copying the
 * caller's: on a node with 1,000 pods thousands of mounts, copied and torn down again for each
 * container. The build mount namespace has only a tmpfs, the store's layers and the pods'
 * directories, under the same paths as on the host; the cost of a copy does not depend on the
 * number of pods. */
#pragma once

#include "base/error.h"

struct cri_config;
struct cri_build_mntns;

/* layers is the store's directory of layers. The namespace lives as long as the object; nothing
 * of it is visible in a file system. */
[[nodiscard]] struct nd_error *cri_build_mntns_open(const struct cri_config *config, const char *layers,
                                                    struct cri_build_mntns **ret);
void cri_build_mntns_free(struct cri_build_mntns *build_mntns);

/* For workers: moves the caller into a copy of the build mount namespace or, if there is none
 * (nullptr), of its own mount namespace. ret_home is for cri_build_mntns_leave(). */
[[nodiscard]] struct nd_error *cri_build_mntns_enter(const struct cri_build_mntns *build_mntns, int *ret_home);

/* For workers: returns to the original mount namespace and closes the descriptor. It is used as
 * a cleanup and must not fail: if it cannot return, the process exits, since further steps would
 * run in the wrong namespace. */
void cri_build_mntns_leave(int *home);
