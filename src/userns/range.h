/* SPDX-License-Identifier: Apache-2.0 */
/* range.h - the IDs of pods: sizes, ranges and delegated extents
 *
 * A node's range is one contiguous part of the ID space, first and count, divided into blocks of
 * ids_per_pod. It comes from the subordinate IDs of user `kubelet` or is everything above the first
 * block. Inside a user namespace only the IDs that are mapped into it can be used, and a block must
 * lie within one line of the map: the kernel refuses a map that would span two. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "sys/userns.h"

#define ND_ID_SPACE (UINT64_C(1) << 32)

enum {
        ND_IDS_UNIT = 65536, /* block sizes are multiples of this; also the default size */
        ND_PODS_DEFAULT = 110,
};

struct nd_userns_range {
        uint32_t first;
        uint32_t count;
};

/* A part of the ID space; unlike a range it may be all of it. */
struct nd_userns_extent {
        uint64_t first;
        uint64_t count;
};

struct nd_userns_extents {
        struct nd_userns_extent *items;
        size_t count;
        size_t capacity;
};
static inline void nd_userns_extents_done(struct nd_userns_extents *extents) {
        nd_vector_done(extents);
}

enum nd_range_source {
        ND_RANGE_DEFAULT, /* no user `kubelet` */
        ND_RANGE_SUBIDS,  /* the subordinate IDs of user `kubelet` */
        /* user `kubelet` without ranges and without getsubids: the default, as the kubelet's
         * authors intended */
        ND_RANGE_NO_GETSUBIDS,
};

/* Checks userNamespaces.idsPerPod as the kubelet validates its configuration. */
[[nodiscard]] struct nd_error *nd_userns_ids_per_pod_check(int64_t ids_per_pod);

struct nd_userns_range nd_range_default(uint32_t ids_per_pod);

/* Parses the output of getsubids for both kinds of IDs: exactly one line "0: kubelet FIRST
 * COUNT". */
[[nodiscard]] struct nd_error *nd_range_parse(const char *getsubids_output, struct nd_userns_range *ret);

/* Returns the node's range by the kubelet's rules, from libsubid. */
[[nodiscard]] struct nd_error *nd_range_of_node(uint32_t ids_per_pod, struct nd_userns_range *ret,
                                                enum nd_range_source *ret_source);

/* The kubelet's checks of a range at its start, with its texts. */
[[nodiscard]] struct nd_error *nd_range_check(struct nd_userns_range range, uint32_t ids_per_pod, uint32_t max_pods);

/* Returns the parts of the ID space that a namespace with these maps can map: the intersections of
 * its uid lines with its gid lines, since a pod's block is the same for both. Sorted; adjacent
 * parts of different lines are not merged. */
void nd_userns_extents_of_maps(const struct nd_userns_maps *uids, const struct nd_userns_maps *gids,
                               struct nd_userns_extents *ret);

/* The same for our own namespace. */
[[nodiscard]] struct nd_error *nd_userns_extents_own(struct nd_userns_extents *ret);

/* Whether [first, first + count) lies within one extent. */
[[nodiscard]] bool nd_userns_extents_hold(const struct nd_userns_extents *extents, uint64_t first, uint64_t count);
