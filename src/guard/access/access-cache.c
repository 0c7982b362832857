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

struct answer {
        unsigned char digest[DIGEST];
        uint64_t until_us;
        uint32_t generation; /* one of another generation is none */
        bool yes;
};

struct guard_access_cache {
        unsigned char key[KEY];
        uint32_t generation;
        struct answer sets[SETS][WAYS];
};

struct guard_access_cache *guard_access_cache_new(void) {
        struct guard_access_cache *answers = nd_new(struct guard_access_cache);

        if (getrandom(answers->key, sizeof answers->key, 0) != (ssize_t) sizeof answers->key)
                abort(); /* the kernel gives 256 bytes or less at once, always */
        answers->generation = 1;
        return answers;
}

void guard_access_cache_free(struct guard_access_cache *answers) {
        if (answers)
                explicit_bzero(answers->key, sizeof answers->key);
        free(answers);
}

void guard_access_cache_clear(struct guard_access_cache *answers) {
        answers->generation++;
        if (answers->generation == 0) { /* what is left of the first generations would be believed again */
                memset(answers->sets, 0, sizeof answers->sets);
                answers->generation = 1;
        }
}

static void digest_of(const struct guard_access_cache *answers, const char *question, unsigned char ret[static DIGEST]) {
        struct sha256_ctx hash;

        sha256_init(&hash);
        sha256_update(&hash, sizeof answers->key, answers->key);
        sha256_update(&hash, strlen(question), (const uint8_t *) question);
        sha256_digest(&hash, DIGEST, ret);
}

static size_t set_of(const unsigned char digest[static DIGEST]) {
        return (digest[0] | (size_t) digest[1] << 8) % SETS;
}

static bool lives(const struct guard_access_cache *answers, const struct answer *answer, uint64_t now_us) {
        return answer->generation == answers->generation && answer->until_us > now_us;
}

bool guard_access_cache_get(const struct guard_access_cache *answers, const char *question, uint64_t now_us, bool *ret) {
        unsigned char digest[DIGEST];
        const struct answer *set;

        digest_of(answers, question, digest);
        set = answers->sets[set_of(digest)];
        for (size_t i = 0; i < WAYS; i++)
                if (lives(answers, &set[i], now_us) && memcmp(set[i].digest, digest, DIGEST) == 0) {
                        *ret = set[i].yes;
                        return true;
                }
        return false;
}

/* Its own place, or else that of one that is over, or else of the one that is over first. */
static struct answer *place_of(struct guard_access_cache *answers, const unsigned char digest[static DIGEST],
                               uint64_t now_us) {
        struct answer *set = answers->sets[set_of(digest)], *place = &set[0];

        for (size_t i = 0; i < WAYS; i++) {
                uint64_t until_us = lives(answers, &set[i], now_us) ? set[i].until_us : 0;

                if (until_us > 0 && memcmp(set[i].digest, digest, DIGEST) == 0)
                        return &set[i];
                if (until_us < (lives(answers, place, now_us) ? place->until_us : 0))
                        place = &set[i];
        }
        return place;
}

void guard_access_cache_put(struct guard_access_cache *answers, const char *question, uint64_t now_us, uint64_t until_us,
                            bool yes) {
        unsigned char digest[DIGEST];
        struct answer *place;

        digest_of(answers, question, digest);
        place = place_of(answers, digest, now_us);
        *place = (struct answer) {.until_us = until_us, .generation = answers->generation, .yes = yes};
        memcpy(place->digest, digest, DIGEST);
}
