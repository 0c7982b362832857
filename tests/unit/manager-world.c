/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/manager-world.h>

#include <stdio.h>

#include <unit/scratch.h>

#include "base/text.h"
#include "userns/mapping.h"

int manager_world_start(void **state) {
        struct manager_world *world = nd_new(struct manager_world);

        world->root = scratch_make();
        world->settings = (struct nd_userns_settings) {.kubelet_root = world->root,
                                                       .ids_per_pod = ND_IDS_UNIT,
                                                       .max_pods = 1,
                                                       .range = {.first = ND_IDS_UNIT, .count = 10 * ND_IDS_UNIT}};
        *state = world;
        return 0;
}

int manager_world_finish(void **state) {
        struct manager_world *world = *state;

        nd_userns_manager_free(world->manager);
        scratch_remove(&world->root);
        free(world);
        return 0;
}

void manager_reopen(struct manager_world *world) {
        nd_userns_manager_done(&world->manager);
        expect_ok(nd_userns_manager_open(&world->settings, &world->manager));
}

void manager_put_file(struct manager_world *world, const char *uid, const char *text) {
        nd_autofree char *directory = nd_format("pods/%s", uid), *file = nd_format("pods/%s/userns", uid);

        scratch_mkdir(world->root, directory);
        scratch_text(world->root, file, text);
}

void manager_put_block(struct manager_world *world, const char *uid, uint32_t first) {
        nd_autofree char *text = nd_mapping_format(first, ND_IDS_UNIT);

        manager_put_file(world, uid, text);
}

char *manager_get_file(struct manager_world *world, const char *uid) {
        nd_autofree char *file = nd_format("pods/%s/userns", uid);

        return scratch_read(world->root, file);
}

uint32_t manager_get(struct manager_world *world, const char *uid) {
        struct nd_userns_range range = {};

        expect_ok(nd_userns_manager_get(world->manager, uid, &range));
        assert_int_equal(range.count, world->settings.ids_per_pod);
        return range.first;
}

size_t manager_handed_out(struct manager_world *world, const uint32_t *held, size_t held_count) {
        struct nd_userns_range range;
        struct nd_error *error;
        size_t count = 0;
        char uid[32];

        for (;; count++) {
                (void) snprintf(uid, sizeof uid, "filler-%zu", count);
                error = nd_userns_manager_get(world->manager, uid, &range);
                if (error)
                        break;
                for (size_t i = 0; i < held_count; i++)
                        assert_int_not_equal(range.first, held[i]);
        }
        expect_error(error, ND_EXHAUSTED, "could not find an empty slot to allocate a user namespace");
        for (size_t i = 0; i < count; i++) {
                (void) snprintf(uid, sizeof uid, "filler-%zu", i);
                expect_ok(nd_userns_manager_release(world->manager, uid));
        }
        return count;
}

static void look(const struct nd_userns_pod *pod, void *userdata) {
        struct manager_found *found = userdata;

        if (!nd_streq(pod->uid, found->uid))
                return;
        found->there = true;
        found->extents = pod->extent_count;
        found->first = pod->extent_count > 0 ? pod->extents[0].first : 0;
        (void) snprintf(found->problem, sizeof found->problem, "%s", pod->problem ?: "");
}

struct manager_found manager_find(struct manager_world *world, const char *uid) {
        struct manager_found found = {.uid = uid};

        nd_userns_manager_each(world->manager, look, &found);
        return found;
}
