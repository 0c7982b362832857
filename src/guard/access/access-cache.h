/* SPDX-License-Identifier: Apache-2.0 */
/* answers.h - what was said of rights, for a while
 *
 * A table of fixed size, which takes memory only as it fills. A question is known by a digest under a key of this process: who asks chooses
 * names, and cannot look for two questions that are alike. Answers push out others of their set, first those that end first; so a crowd costs
 * questions, never memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct guard_access_cache;

struct guard_access_cache *guard_access_cache_new(void);
void guard_access_cache_free(struct guard_access_cache *answers);
void guard_access_cache_clear(struct guard_access_cache *answers); /* all of them */

/* Whether an answer is known at this time. */
bool guard_access_cache_get(const struct guard_access_cache *answers, const char *question, uint64_t now_us, bool *ret);
void guard_access_cache_put(struct guard_access_cache *answers, const char *question, uint64_t now_us, uint64_t until_us,
                            bool yes);
