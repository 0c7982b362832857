/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - resolves the name of a pod or container
 *
 *      NAMESPACE/POD/CONTAINER      NAMESPACE/POD      POD/CONTAINER      POD
 *
 * POD is a name, a pod's UID or its sandbox's ID; alone it may also be a container's ID. The
 * beginning of each is enough; that of an ID needs TARGET_ID_PREFIX characters. NAMESPACE is given
 * in full. An object that is named in full is preferred to one whose name only begins so. A name
 * that matches several objects is rejected with a list of them. Of a restarted pod or container
 * the newest is chosen. */
#pragma once

#include <nodens.pb-c.h>

#include "base/error.h"
#include "base/vector.h"

enum {
        TARGET_ID_PREFIX = 4, /* minimum length of an ID prefix */
        TARGET_LISTED = 20,   /* limit of matches in an error message */
        TARGET_SIMILAR = 5,   /* the same for similar names */
};

/* Whether the beginning of a pod's name is enough. */
enum cli_target_names {
        TARGET_NAMES_PREFIX,
        TARGET_NAMES_WHOLE,
};

struct cli_target {
        const Nodens__V1__PodEntry *pod;
        const Nodens__V1__ContainerEntry *container;
};

struct cli_target_pods { /* see base/vector.h */
        const Nodens__V1__PodEntry **items;
        size_t count, capacity;
};

/* Returns all sandboxes of one pod, newest first: there are several while an old one waits for its
 * removal. ND_NOT_FOUND, or ND_INVALID for an ambiguous name. */
[[nodiscard]] struct nd_error *cli_target_pod(const Nodens__V1__PodsAnswer *answer, const char *name,
                                              enum cli_target_names names, struct cli_target_pods *ret);

/* Finds a container; container_name is its name if given separately, else nullptr. previous: the
 * one before the newest. */
[[nodiscard]] struct nd_error *cli_target_container(const Nodens__V1__PodsAnswer *answer, const char *name,
                                                    const char *container_name, bool previous, struct cli_target *ret);

/* Formats "namespace/pod", sanitized for a terminal. The caller frees it. */
[[nodiscard]] char *cli_target_pod_name(const Nodens__V1__PodEntry *pod);
