/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h - which blocks of the ID space are free
 *
 * The ID space of 2^32 is cut into blocks of one size; a block is known by its number, first ID / size. Three levels of 64-bit
 * words, where a set bit says "something free below", find the next free block in three steps however full the space is.
 * The search goes on where the last one ended, so that a released block rests as long as possible before it is used again:
 * files that a dead pod left behind do not meet a new owner at once. */
#pragma once

#include <stdint.h>

#include "base/memory.h"

enum {
        ND_BLOCKS_MOST = 65536, /* 2^32 IDs in blocks of 2^16, the smallest size */
        ND_BLOCKS_LEVELS = 3,
};

struct nd_blocks {
        uint32_t count; /* block numbers are below this */
        uint32_t free_count;
        uint32_t cursor;                   /* where the next search starts */
        uint64_t *words[ND_BLOCKS_LEVELS]; /* [0]: a bit per block, set = free; above: a bit per word that is not 0 */
};

void nd_blocks_done(struct nd_blocks *blocks);

/* All blocks taken; nd_blocks_give() makes the usable ones free. count is at most ND_BLOCKS_MOST. */
void nd_blocks_init(uint32_t count, struct nd_blocks *ret);

bool nd_blocks_is_free(const struct nd_blocks *blocks, uint32_t block);
bool nd_blocks_take(struct nd_blocks *blocks, uint32_t block); /* false when it was not free */
void nd_blocks_give(struct nd_blocks *blocks, uint32_t block);

/* The next free block, for the caller to take; false when there is none. */
[[nodiscard]] bool nd_blocks_find(const struct nd_blocks *blocks, uint32_t *ret);
