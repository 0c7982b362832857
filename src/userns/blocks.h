/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h - bitmap of the free blocks of the ID space
 *
 * The ID space of 2^32 is divided into blocks of one size; the number of a block is its first ID /
 * size. Three levels of 64-bit words, where a set bit means "something free below", find the next
 * free block in three steps regardless of how full the space is. The search starts where the last
 * one ended, so that a released block stays unused as long as possible: files that a dead pod left
 * behind do not get a new owner at once. */
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
        uint32_t cursor; /* where the next search starts */
        /* [0]: a bit per block, set = free; above: a bit per word that is not 0 */
        uint64_t *words[ND_BLOCKS_LEVELS];
};

void nd_blocks_done(struct nd_blocks *blocks);

/* All blocks are taken at first; nd_blocks_give() frees the usable ones. count is at most
 * ND_BLOCKS_MOST. */
void nd_blocks_init(uint32_t count, struct nd_blocks *ret);

bool nd_blocks_is_free(const struct nd_blocks *blocks, uint32_t block);
bool nd_blocks_take(struct nd_blocks *blocks, uint32_t block); /* false if it was not free */
void nd_blocks_give(struct nd_blocks *blocks, uint32_t block);

/* Returns the next free block, for the caller to take; false if there is none. */
[[nodiscard]] bool nd_blocks_find(const struct nd_blocks *blocks, uint32_t *ret);
