/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - which pod or container somebody means
 *
 *      NAMESPACE/POD/CONTAINER      NAMESPACE/POD      POD/CONTAINER      POD
 *
 * POD is a name, a pod's uid, or the beginning of its sandbox's id; alone it may also be the beginning of a container's id. Whoever is meant must be clear:
 * a name that fits several is refused with a list of them. Of a pod or container that was started over the newest is meant. */
#pragma once

#include <nodens.pb-c.h>

#include "base/error.h"
#include "base/vector.h"

enum {
        TARGET_ID_PREFIX = 4, /* digits of an id that are enough */
        TARGET_LISTED = 20,   /* of those that a name fits, how many are told */
};

struct cli_target {
        const Nodens__V1__PodEntry *pod;
        const Nodens__V1__ContainerEntry *container;
};

struct cli_target_pods { /* see base/vector.h */
        const Nodens__V1__PodEntry **items;
        size_t count, capacity;
};

/* All sandboxes of one pod, the newest first: there are several while an old one waits for its removal. ND_NOT_FOUND, or ND_INVALID for a name that is
 * not clear. */
[[nodiscard]] struct nd_error *cli_target_pod(const Nodens__V1__PodsAnswer *answer, const char *name,
                                              struct cli_target_pods *ret);

/* A container; container_name is for those who name it apart, else nullptr. previous: the one that was there before the newest. */
[[nodiscard]] struct nd_error *cli_target_container(const Nodens__V1__PodsAnswer *answer, const char *name,
                                                    const char *container_name, bool previous, struct cli_target *ret);

/* "namespace/pod", fit for a terminal. The caller's to free. */
[[nodiscard]] char *cli_target_pod_name(const Nodens__V1__PodEntry *pod);
