/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - string to pointer, for keys that may be hostile
 *
 * Open addressing with linear probing; keys are copied and hashed with SipHash under a key drawn once per process, so that
 * nobody outside can choose keys that collide. Removing shifts the followers back, hence no tombstones and no slow decay.
 * Values belong to the caller. Iteration order means nothing; changing the map ends an iteration. */
#pragma once

#include "base/memory.h"

struct nd_map_slot {
        char *key; /* nullptr = free */
        void *value;
        size_t hash;
};

struct nd_map {
        struct nd_map_slot *slots; /* a power of two of them, or nullptr while nothing was put */
        size_t count;
        size_t capacity;
};

void nd_map_done(struct nd_map *map); /* the keys; values are the caller's */
void *nd_map_get(const struct nd_map *map, const char *key);
bool nd_map_has(const struct nd_map *map, const char *key);
const char *nd_map_key(const struct nd_map *map,
                       const char *key); /* the map's own copy, until it is removed; nullptr: it has none */
void *nd_map_put(struct nd_map *map, const char *key, void *value); /* the former value, nullptr when there was none */
void *nd_map_remove(struct nd_map *map, const char *key);           /* the removed value */

/* The next occupied slot after *position, which starts at 0; nullptr at the end:
 *      for (size_t at = 0; (slot = nd_map_next(&map, &at));) */
const struct nd_map_slot *nd_map_next(const struct nd_map *map, size_t *position);
