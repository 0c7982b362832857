/* SPDX-License-Identifier: Apache-2.0 */
/* manager-world.h - a userns manager on a scratch directory of pods */
#pragma once

#include <unit/expect.h>

#include "userns/manager.h"

struct manager_world {
        char *root;
        struct nd_userns_settings settings;
        struct nd_userns_manager *manager;
};

#define manager_test(test) cmocka_unit_test_setup_teardown(test, manager_world_start, manager_world_finish)

struct manager_found {
        const char *uid;
        bool there;
        char problem[300];
        size_t extents;
        uint64_t first;
};

int manager_world_start(void **state);
int manager_world_finish(void **state);
/* Opens the manager, again if it is open: only the files persist. */
void manager_reopen(struct manager_world *world);
void manager_put_file(struct manager_world *world, const char *uid, const char *text);
void manager_put_block(struct manager_world *world, const char *uid, uint32_t first);
char *manager_get_file(struct manager_world *world, const char *uid);
uint32_t manager_get(struct manager_world *world, const char *uid);
/* How many blocks can still be handed out: takes them all, then gives them back. Fails when one is
 * in `held`. */
size_t manager_handed_out(struct manager_world *world, const uint32_t *held, size_t held_count);
struct manager_found manager_find(struct manager_world *world, const char *uid);
