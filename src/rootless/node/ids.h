/* SPDX-License-Identifier: Apache-2.0 */
/* ids.h - the user and group IDs of a node, and what they allow
 *
 * A node has the user as root and the user's subordinate IDs. If there are none it has one ID: it
 * starts anyway, and the text of its limits says what does not work. */
#pragma once

#include "base/strings.h"
#include "sys/userns.h"
#include "userns/range.h"

struct rootless_ids {
        struct nd_userns_maps uids, gids;
        struct nd_userns_range pods; /* for pods with own user namespaces; count 0 = none */
        char *advice;                /* the command that assigns more; nullptr = not known */
};
void rootless_ids_done(struct rootless_ids *ids);

/* The IDs that a node of the calling user would have; inside: those of the container that we are in
 * (inside.h). */
[[nodiscard]] struct nd_error *rootless_ids_find(bool inside, struct rootless_ids *ret);

/* The IDs of a running node, given its init. */
[[nodiscard]] struct nd_error *rootless_ids_of_process(pid_t pid, struct rootless_ids *ret);

/* Whether only the user's own ID is mapped. Writing such a map needs no program with privileges. */
[[nodiscard]] bool rootless_ids_single(const struct nd_userns_maps *uids, const struct nd_userns_maps *gids);

/* The number of IDs, and of pods with hostUsers: false for which they have room. */
[[nodiscard]] char *rootless_ids_summary(const struct rootless_ids *ids);

/* What a node with fewer than 65536 IDs cannot do; nothing for others. */
void rootless_ids_limits(const struct rootless_ids *ids, struct nd_strings *ret);
