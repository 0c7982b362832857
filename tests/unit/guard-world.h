/* SPDX-License-Identifier: Apache-2.0 */
/* guard-world.h - a store with the default constraints, as a cluster would have them from the
 * guard's own manifest */
#pragma once

#include "guard/access/rbac.h"
#include "guard/core/standards.h"
#include "guard/core/store.h"

struct guard_world {
        struct guard_store store;
        struct guard_rbac rbac;
        struct guard_standards standards;
};

void guard_world_make(struct guard_world *ret);
void guard_world_done(struct guard_world *world);

/* Adds an object to the world, by its kind. Aborts if the text cannot be parsed. */
void guard_world_tell(struct guard_world *world, const char *json);
