/* SPDX-License-Identifier: Apache-2.0 */
/* delegation.h - the IDs of a rootless node: the user as root, then the subordinate ranges
 *
 * IDs 1 to 65535 come first, since images use them. The rest of each range is placed where it gives
 * the most whole, aligned blocks for pods with user namespaces of their own: the kernel refuses a
 * map that crosses two lines of its parent, so a block must lie within one line.
 * With few IDs the last three are 65532 to 65534, the unprivileged users of many images. */
#pragma once

#include "sys/userns.h"
#include "userns/range.h"
#include "userns/subid.h"

/* own is the ID of the user or group outside. Ranges beyond the kernel's limit of lines are
 * dropped. */
void nd_delegation_maps(uint32_t own, const struct nd_subid_list *ranges, struct nd_userns_maps *ret);

/* The IDs for pods with user namespaces of their own, as a kubelet can use them: the longest run of
 * whole, aligned blocks above the first, each within one line of both maps. The count is 0 if there
 * is none. */
struct nd_userns_range nd_delegation_pods(const struct nd_userns_maps *uids, const struct nd_userns_maps *gids);

/* The number of IDs in maps. */
uint64_t nd_delegation_count(const struct nd_userns_maps *maps);

/* Returns a command for root that assigns a user subordinate IDs that no other user has, with room
 * for a node and some pods. Free it. */
[[nodiscard]] char *nd_delegation_advice(const char *user);
