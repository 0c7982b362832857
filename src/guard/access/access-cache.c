/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/access/access-cache.h"

#include <nettle/sha2.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"

enum {
        SETS = 1 << 14,
        WAYS = 4,
        DIGEST = 16,
        KEY = 32,
};

struct entry {
        unsigned char digest[DIGEST];
        uint64_t until_us;
        uint32_t generation; /* an entry of another generation is invalid */
        bool allowed;
};

struct guard_access_cache {
        unsigned char key[KEY];
        uint32_t generation;
        struct entry sets[SETS][WAYS];
};

struct guard_access_cache *guard_access_cache_new(void) {
        struct guard_access_cache *cache = nd_new(struct guard_access_cache);

        if (getrandom(cache->key, sizeof cache->key, 0) != (ssize_t) sizeof cache->key)
                abort(); /* getrandom() never returns less than asked for up to 256 bytes */
        cache->generation = 1;
        return cache;
}

void guard_access_cache_free(struct guard_access_cache *cache) {
        if (cache)
                explicit_bzero(cache->key, sizeof cache->key);
        free(cache);
}

void guard_access_cache_clear(struct guard_access_cache *cache) {
        cache->generation++;
        /* otherwise entries of the first generations would become valid again */
        if (cache->generation == 0) {
                memset(cache->sets, 0, sizeof cache->sets);
                cache->generation = 1;
        }
}

static void digest_of(const struct guard_access_cache *cache, const char *key, unsigned char ret[static DIGEST]) {
        struct sha256_ctx hash;

        sha256_init(&hash);
        sha256_update(&hash, sizeof cache->key, cache->key);
        sha256_update(&hash, strlen(key), (const uint8_t *) key);
        sha256_digest(&hash, DIGEST, ret);
}

static size_t set_of(const unsigned char digest[static DIGEST]) {
        return (digest[0] | (size_t) digest[1] << 8) % SETS;
}

static bool is_valid(const struct guard_access_cache *cache, const struct entry *entry, uint64_t now_us) {
        return entry->generation == cache->generation && entry->until_us > now_us;
}

bool guard_access_cache_get(const struct guard_access_cache *cache, const char *key, uint64_t now_us, bool *ret) {
        unsigned char digest[DIGEST];
        const struct entry *set;

        digest_of(cache, key, digest);
        set = cache->sets[set_of(digest)];
        for (size_t i = 0; i < WAYS; i++)
                if (is_valid(cache, &set[i], now_us) && memcmp(set[i].digest, digest, DIGEST) == 0) {
                        *ret = set[i].allowed;
                        return true;
                }
        return false;
}

/* Returns the slot of the same key, or else an expired one, or else the first to expire. */
static struct entry *slot_for(struct guard_access_cache *cache, const unsigned char digest[static DIGEST], uint64_t now_us) {
        struct entry *set = cache->sets[set_of(digest)], *slot = &set[0];

        for (size_t i = 0; i < WAYS; i++) {
                uint64_t until_us = is_valid(cache, &set[i], now_us) ? set[i].until_us : 0;

                if (until_us > 0 && memcmp(set[i].digest, digest, DIGEST) == 0)
                        return &set[i];
                if (until_us < (is_valid(cache, slot, now_us) ? slot->until_us : 0))
                        slot = &set[i];
        }
        return slot;
}

void guard_access_cache_put(struct guard_access_cache *cache, const char *key, uint64_t now_us, uint64_t until_us,
                            bool allowed) {
        unsigned char digest[DIGEST];
        struct entry *slot;

        digest_of(cache, key, digest);
        slot = slot_for(cache, digest, now_us);
        *slot = (struct entry) {.until_us = until_us, .generation = cache->generation, .allowed = allowed};
        memcpy(slot->digest, digest, DIGEST);
}
