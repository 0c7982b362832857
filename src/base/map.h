/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - string to pointer, safe for hostile keys
 *
 * Open addressing with linear probing; keys are copied and hashed with SipHash under a random key
 * per process, so that an attacker cannot choose keys that collide. Removing shifts the followers
 * back, hence no tombstones and no slow decay. Values belong to the caller. The iteration order is
 * undefined; changing the map invalidates an iteration. */
#pragma once

#include "base/memory.h"

struct nd_map_slot {
        char *key; /* nullptr = free */
        void *value;
        size_t hash;
};

struct nd_map {
        struct nd_map_slot *slots; /* a power of two of them; nullptr before the first put */
        size_t count;
        size_t capacity;
};

void nd_map_done(struct nd_map *map); /* frees the keys; the caller owns the values */
void *nd_map_get(const struct nd_map *map, const char *key);
bool nd_map_has(const struct nd_map *map, const char *key);
/* The map's own copy, valid until it is removed; nullptr: not found. */
const char *nd_map_key(const struct nd_map *map, const char *key);
/* The former value, or nullptr. */
void *nd_map_put(struct nd_map *map, const char *key, void *value);
void *nd_map_remove(struct nd_map *map, const char *key); /* the removed value */

/* The next occupied slot after *position, which starts at 0; nullptr at the end:
 *      for (size_t at = 0; (slot = nd_map_next(&map, &at));) */
const struct nd_map_slot *nd_map_next(const struct nd_map *map, size_t *position);
