/* SPDX-License-Identifier: Apache-2.0 */
/* delegation.h - which IDs a node of an ordinary user has: the user as root, then the subordinate ranges
 *
 * IDs 1 to 65535 come first, since images use them; what is left of each range is put where it gives most whole, aligned blocks for
 * pods with user namespaces of their own: the kernel refuses a map that crosses two lines of its parent, so a block must lie
 * within one line. */
#pragma once

#include "sys/subid.h"
#include "sys/userns.h"

/* own is the user's or the group's ID outside. Ranges that the kernel's ceiling on lines leaves no room for are dropped. */
void nd_delegation_maps(uint32_t own, const struct nd_subid_list *ranges, struct nd_userns_maps *ret);
