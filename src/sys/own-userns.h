/* SPDX-License-Identifier: Apache-2.0 */
/* own-userns.h - the user namespace that we run in: the host's, or that of a rootless node
 *
 * The only place that knows the difference; everything else gets this struct and asks it. In a
 * node only the IDs of its maps exist, and capabilities are valid for the node's own namespaces:
 * not for resource limits, OOM scores, devices and security modules, which belong to the host. */
#pragma once

#include "sys/userns.h"

struct nd_own_userns {
        bool initial; /* the host's */
        struct nd_userns_maps uids, gids;
};

void nd_own_userns_done(struct nd_own_userns *own);

[[nodiscard]] struct nd_error *nd_own_userns_read(struct nd_own_userns *ret);

/* Whether a node has fewer IDs than images use, or only its user's. */
[[nodiscard]] bool nd_own_userns_is_small(const struct nd_own_userns *own);
[[nodiscard]] bool nd_own_userns_is_single(const struct nd_own_userns *own);

/* Whether we run in a rootless node, for callers without the struct that need it once. */
[[nodiscard]] bool nd_own_userns_in_node(void);

/* Whether the ID exists here. */
[[nodiscard]] bool nd_own_userns_has_uid(const struct nd_own_userns *own, uint32_t uid);
[[nodiscard]] bool nd_own_userns_has_gid(const struct nd_own_userns *own, uint32_t gid);

/* The highest group ID that exists here. */
uint32_t nd_own_userns_last_gid(const struct nd_own_userns *own);

/* Whether a namespace below ours can have these maps. The kernel requires that each lies within
 * one line of our own map. */
[[nodiscard]] bool nd_own_userns_can_map(const struct nd_own_userns *own, const struct nd_userns_map *uids,
                                         const struct nd_userns_map *gids);

/* The IDs of a map as text, for errors: "0 to 65536, 100000 to 165535". The caller frees it. */
[[nodiscard]] char *nd_own_userns_describe(const struct nd_userns_maps *maps);

enum { ND_OWN_USERNS_START = 36 }; /* characters */

/* Identifies the start of the host or of the node: the kernel's boot ID, whose last part in a node
 * is the start time of its process 1. */
[[nodiscard]] struct nd_error *nd_own_userns_start(const struct nd_own_userns *own, char ret[static ND_OWN_USERNS_START + 1]);

/* The capabilities of a set that are valid for the whole kernel: all of them on the host, none in
 * a node. */
static inline uint64_t nd_own_userns_over_kernel(const struct nd_own_userns *own, uint64_t capabilities) {
        return own->initial ? capabilities : 0;
}
