/* SPDX-License-Identifier: Apache-2.0 */
/* settle.h - what a new version floor waits for. Pure functions of the store. */
#pragma once

#include "guard/core/store.h"

/* Returns what a new floor waits for in the cluster; nullptr: nothing. A raised floor waits for
 * nodes that are below it. Every pool must have a Ready node that meets it; a cluster without nodes
 * has no pools. */
const char *guard_settle_obstacle(const struct guard_store *store, const struct nd_floor *floor, struct nd_arena *arena);

/* Writes a patch of the object's status. waits: what it waits for; nullptr: the status becomes the
 * spec. */
void guard_settle_patch(const struct nd_floor *floor, const char *waits, struct nd_arena *arena, struct nd_text *text);
/* Whether the status is what that patch would make of it. */
bool guard_settle_is_done(const struct nd_floor *floor, const char *waits);
