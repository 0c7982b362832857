/* SPDX-License-Identifier: Apache-2.0 */
/* floor-admission.h - admission of the version floor, of nodes that join, and of their certificate
 * signing requests
 *
 * A pure function of a review and the store. */
#pragma once

#include "guard/core/review.h"
#include "guard/core/store.h"

/* Floor: a minimum above the version of an existing kubelet is refused, and so is deleting a floor
 * before it was lowered to none. Nodes: a kubelet below the floor cannot create its Node.
 * Certificate signing requests: those of a locked node are refused. */
void guard_floor_decide(const struct guard_store *store, const struct guard_review *review, struct nd_arena *arena,
                        struct guard_response *ret);

/* Returns the name of the node as which a user in the group system:nodes acts; "": none. */
const char *guard_floor_node_of(const struct guard_subject *user);
/* Whether a user claims to be a node: by the group that the Node authorizer requires. */
bool guard_floor_is_node(const struct guard_subject *user);
/* Returns why a node is locked; nullptr: it is not. */
const char *guard_floor_lock(const struct guard_store *store, const char *node, struct nd_arena *arena);
