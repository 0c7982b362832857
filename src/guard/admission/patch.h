/* SPDX-License-Identifier: Apache-2.0 */
/* patch.h - what was filled in, as a JSON patch
 *
 * Only operations "add": of members that were not there, or of lists that grew. An object that is
 * there is never replaced, since others may have put fields into it that we do not know. */
#pragma once

#include "kube/pod.h"

/* The difference between a pod and a copy that a constraint has filled; annotations are those that
 * the caller names, with their values. Gives nullptr where there is none. In the arena. */
const char *guard_patch_make(const struct nd_pod *before, const struct nd_pod *after, const struct nd_shape_pair *annotations,
                             size_t annotation_count, struct nd_arena *arena);
