/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/blocks.h"

#include "base/assert.h"

static_assert(ND_BLOCKS_MOST <= 64 * 64 * 64, "three levels reach every block");

static uint32_t words_for(uint32_t bits) {
        return (bits + 63) / 64;
}

void nd_blocks_done(struct nd_blocks *blocks) {
        for (int level = 0; level < ND_BLOCKS_LEVELS; level++)
                free(blocks->words[level]);
        *blocks = (struct nd_blocks) {};
}

void nd_blocks_init(uint32_t count, struct nd_blocks *ret) {
        uint32_t bits = count;

        nd_assert(count <= ND_BLOCKS_MOST);
        *ret = (struct nd_blocks) {.count = count};
        for (int level = 0; level < ND_BLOCKS_LEVELS; level++) {
                ret->words[level] = nd_calloc(words_for(bits) + 1, sizeof(uint64_t));
                bits = words_for(bits);
        }
}

bool nd_blocks_is_free(const struct nd_blocks *blocks, uint32_t block) {
        return block < blocks->count && blocks->words[0][block / 64] >> (block % 64) & 1;
}

bool nd_blocks_take(struct nd_blocks *blocks, uint32_t block) {
        if (!nd_blocks_is_free(blocks, block))
                return false;
        nd_assert(blocks->free_count > 0);
        blocks->free_count--;
        blocks->cursor = block + 1;
        for (int level = 0; level < ND_BLOCKS_LEVELS; level++) {
                uint64_t *word = &blocks->words[level][block / 64];

                *word &= ~(UINT64_C(1) << block % 64);
                if (*word != 0)
                        break;
                block /= 64;
        }
        return true;
}

void nd_blocks_give(struct nd_blocks *blocks, uint32_t block) {
        if (block >= blocks->count || nd_blocks_is_free(blocks, block))
                return;
        blocks->free_count++;
        nd_assert(blocks->free_count <= blocks->count);
        for (int level = 0; level < ND_BLOCKS_LEVELS; level++) {
                blocks->words[level][block / 64] |= UINT64_C(1) << block % 64;
                block /= 64;
        }
}

/* Returns the first set bit at or after a position of a level; if its word has none, searches the
 * level above. */
static bool find_from(const struct nd_blocks *blocks, int level, uint32_t from, uint32_t *ret) {
        uint32_t bits = blocks->count, word_index;
        uint64_t word;

        for (int below = 0; below < level; below++)
                bits = words_for(bits);
        if (from >= bits)
                return false;
        word = blocks->words[level][from / 64] >> from % 64;
        if (word != 0) {
                *ret = from + (uint32_t) __builtin_ctzll(word);
                return true;
        }
        if (level + 1 == ND_BLOCKS_LEVELS || !find_from(blocks, level + 1, from / 64 + 1, &word_index))
                return false;
        *ret = word_index * 64 + (uint32_t) __builtin_ctzll(blocks->words[level][word_index]);
        return true;
}

bool nd_blocks_find(const struct nd_blocks *blocks, uint32_t *ret) {
        return find_from(blocks, 0, blocks->cursor, ret) || find_from(blocks, 0, 0, ret);
}
