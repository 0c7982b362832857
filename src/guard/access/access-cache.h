/* SPDX-License-Identifier: Apache-2.0 */
/* access-cache.h - cache of SubjectAccessReview results
 *
 * A set-associative table of fixed size, which takes memory only as it fills. An entry is found by
 * a digest of its key under a secret of this process: clients choose names, and must not be able to
 * search for two keys with the same digest. A new entry replaces the one of its set that expires
 * first; so many users cost access reviews, never memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct guard_access_cache;

struct guard_access_cache *guard_access_cache_new(void);
void guard_access_cache_free(struct guard_access_cache *cache);
void guard_access_cache_clear(struct guard_access_cache *cache);

/* Returns whether there is an entry that is valid at this time. */
bool guard_access_cache_get(const struct guard_access_cache *cache, const char *key, uint64_t now_us, bool *ret);
void guard_access_cache_put(struct guard_access_cache *cache, const char *key, uint64_t now_us, uint64_t until_us,
                            bool allowed);
