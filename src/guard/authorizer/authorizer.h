/* SPDX-License-Identifier: Apache-2.0 */
/* authorizer.h - which requests of a locked node are denied
 *
 * A pure function of a request and the store. A node is locked if its kubelet is below the version
 * floor, or if it has no Node object, whose status would report the version. It may then
 *      get, create, update    its own Node
 *      patch                  the status of its own Node: an upgraded kubelet unlocks itself
 *      create                 SubjectAccessReviews
 * All others are denied, before the authorizers after this one are asked. */
#pragma once

#include "guard/authorizer/access-request.h"
#include "guard/core/store.h"

/* Returns why a request is denied; nullptr: no opinion. current: nodes and floor are known and
 * current; otherwise every node counts as locked. */
const char *guard_authorizer_decide(const struct guard_store *store, bool current, const struct guard_access_request *request,
                                    struct nd_arena *arena);
