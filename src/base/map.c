/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

static inline uint64_t rotate_left(uint64_t x, int by) {
        return x << by | x >> (64 - by);
}

struct sip_state {
        uint64_t v0, v1, v2, v3;
};

static inline void sip_round(struct sip_state *s) {
        s->v0 += s->v1;
        s->v1 = rotate_left(s->v1, 13) ^ s->v0;
        s->v0 = rotate_left(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate_left(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate_left(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate_left(s->v1, 17) ^ s->v2;
        s->v2 = rotate_left(s->v2, 32);
}

static inline void sip_word(struct sip_state *s, uint64_t word) {
        s->v3 ^= word;
        sip_round(s);
        s->v0 ^= word;
}

/* SipHash-1-3: strong enough against chosen collisions in a table, and fast. */
static uint64_t sip_hash(const uint64_t key[2], const char *bytes, size_t length) {
        struct sip_state s = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                              key[1] ^ 0x7465646279746573};
        uint64_t word = 0;
        size_t i = 0;

        for (; i + 8 <= length; i += 8) {
                memcpy(&word, bytes + i, 8);
                sip_word(&s, word);
        }
        word = 0;
        if (i < length)
                memcpy(&word, bytes + i, length - i);
        sip_word(&s, word | (uint64_t) length << 56);
        s.v2 ^= 0xff;
        for (int round = 0; round < 3; round++)
                sip_round(&s);
        return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static size_t hash_of(const char *key) {
        static uint64_t secret[2];

        /* A map must not wait for the kernel's generator in early boot: GRND_INSECURE never
         * blocks. */
        if (secret[0] == 0 && getrandom(secret, sizeof secret, GRND_INSECURE) != sizeof secret)
                secret[0] = (uintptr_t) &secret | 1;
        return sip_hash(secret, key, strlen(key));
}

void nd_map_done(struct nd_map *map) {
        for (size_t i = 0; i < map->capacity; i++)
                free(map->slots[i].key);
        free(map->slots);
        *map = (struct nd_map) {};
}

/* The slot with the key, or the free one where it belongs. The table always has a free slot. */
static struct nd_map_slot *find(const struct nd_map *map, const char *key, size_t hash) {
        size_t mask = map->capacity - 1;

        for (size_t i = hash & mask;; i = (i + 1) & mask) {
                struct nd_map_slot *slot = &map->slots[i];

                if (!slot->key || (slot->hash == hash && strcmp(slot->key, key) == 0))
                        return slot;
        }
}

static void grow(struct nd_map *map) {
        struct nd_map larger = {
                .count = map->count,
                .capacity = map->capacity > 0 ? map->capacity * 2 : 16,
        };

        larger.slots = nd_calloc(larger.capacity, sizeof *larger.slots);
        for (size_t i = 0; i < map->capacity; i++)
                if (map->slots[i].key)
                        *find(&larger, map->slots[i].key, map->slots[i].hash) = map->slots[i];
        free(map->slots);
        *map = larger;
}

void *nd_map_get(const struct nd_map *map, const char *key) {
        struct nd_map_slot *slot;

        if (map->count == 0)
                return nullptr;
        slot = find(map, key, hash_of(key));
        return slot->key ? slot->value : nullptr;
}

bool nd_map_has(const struct nd_map *map, const char *key) {
        return map->count > 0 && find(map, key, hash_of(key))->key;
}

const char *nd_map_key(const struct nd_map *map, const char *key) {
        return map->count > 0 ? find(map, key, hash_of(key))->key : nullptr;
}

void *nd_map_put(struct nd_map *map, const char *key, void *value) {
        size_t hash = hash_of(key);
        struct nd_map_slot *slot;

        if (map->count + 1 > map->capacity / 4 * 3)
                grow(map);
        slot = find(map, key, hash);
        if (slot->key)
                return nd_take(slot->value, value);
        *slot = (struct nd_map_slot) {.key = nd_strdup(key), .value = value, .hash = hash};
        map->count++;
        return nullptr;
}

void *nd_map_remove(struct nd_map *map, const char *key) {
        size_t mask = map->capacity - 1, hole, i;
        struct nd_map_slot *slot;
        void *value;

        if (map->count == 0)
                return nullptr;
        slot = find(map, key, hash_of(key));
        if (!slot->key)
                return nullptr;
        value = slot->value;
        free(slot->key);
        map->count--;

        /* Move back every follower whose home is not between the hole and itself. */
        hole = (size_t) (slot - map->slots);
        for (i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
                size_t home = map->slots[i].hash & mask;

                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        map->slots[hole] = map->slots[i];
                        hole = i;
                }
        }
        map->slots[hole] = (struct nd_map_slot) {};
        return value;
}

const struct nd_map_slot *nd_map_next(const struct nd_map *map, size_t *position) {
        while (*position < map->capacity) {
                const struct nd_map_slot *slot = &map->slots[(*position)++];

                if (slot->key)
                        return slot;
        }
        return nullptr;
}
