/* SPDX-License-Identifier: Apache-2.0 */
/* patch.h - the fields that a constraint filled in, as a JSON patch
 *
 * Only "add" operations: of missing members, or of lists that grew. An object that exists is never
 * replaced, since it may contain fields that we do not decode. */
#pragma once

#include "kube/pod.h"

/* Returns the difference between a pod and a copy that a constraint has filled, and the caller's
 * annotations, in the arena; nullptr if there is none. */
const char *guard_patch_make(const struct nd_pod *before, const struct nd_pod *after, const struct nd_shape_pair *annotations,
                             size_t annotation_count, struct nd_arena *arena);
