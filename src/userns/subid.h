/* SPDX-License-Identifier: Apache-2.0 */
/* subid.h - subordinate IDs by libsubid, with the semantics of getsubids
 *
 * libsubid reads /etc/subuid and /etc/subgid or, if nsswitch.conf selects one, a directory service.
 * As in getsubids, "the user has no ranges" is an error and not an empty list: with a directory
 * service the two cannot be distinguished. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

struct nd_subid {
        uint64_t first;
        uint64_t count;
};

struct nd_subid_list {
        struct nd_subid *items;
        size_t count;
        size_t capacity;
};
static inline void nd_subid_list_done(struct nd_subid_list *ranges) {
        nd_vector_done(ranges);
}

enum nd_subid_kind {
        ND_SUBUID,
        ND_SUBGID,
};

[[nodiscard]] struct nd_error *nd_subid_list_of(const char *user, enum nd_subid_kind kind, struct nd_subid_list *ret);

/* Formats the ranges as getsubids prints them: "0: kubelet 65536 65536\n" per range. */
[[nodiscard]] char *nd_subid_list_text(const char *user, const struct nd_subid_list *ranges);
