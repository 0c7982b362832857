/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-blocks.c - the input is a list of operations on the blocks; a plain array of flags must
 * agree after each
 *
 * Two bytes are the number of blocks; then each operation has three: its kind and its block. */
#include <string.h>

#include <unit/fuzz.h>

#include "userns/blocks.h"

static struct {
        bool free[ND_BLOCKS_MOST];
        uint32_t count;
        uint32_t free_count;
        uint32_t cursor;
} plain;

/* The next free block at or after the cursor, or else the first one. */
static bool plain_find(uint32_t *ret) {
        for (uint32_t i = 0; i < plain.count; i++) {
                uint32_t block = plain.cursor < plain.count ? (plain.cursor + i) % plain.count : i;

                if (plain.free[block]) {
                        *ret = block;
                        return true;
                }
        }
        return false;
}

static void take(struct nd_blocks *blocks, uint32_t block) {
        bool was_free = block < plain.count && plain.free[block];

        fuzz_require(nd_blocks_take(blocks, block) == was_free);
        if (!was_free)
                return;
        plain.free[block] = false;
        plain.free_count--;
        plain.cursor = block + 1;
}

static void give(struct nd_blocks *blocks, uint32_t block) {
        nd_blocks_give(blocks, block);
        if (block >= plain.count || plain.free[block])
                return;
        plain.free[block] = true;
        plain.free_count++;
}

static void find(struct nd_blocks *blocks) {
        uint32_t ours = 0, expected = 0;
        bool found = nd_blocks_find(blocks, &ours);

        fuzz_require(found == plain_find(&expected));
        if (!found)
                return;
        fuzz_require(ours == expected);
        take(blocks, ours);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        enum { OPERATIONS = 2000 };
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};

        if (size < 2)
                return 0;
        memset(&plain, 0, sizeof plain);
        plain.count = (uint32_t) data[0] << 8 | data[1];
        nd_blocks_init(plain.count, &blocks);
        for (size_t i = 2; i + 2 < size && i < 3 * OPERATIONS; i += 3) {
                uint32_t block = (uint32_t) data[i + 1] << 8 | data[i + 2];

                switch (data[i] % 4) {
                case 0:
                        take(&blocks, block);
                        break;
                case 1:
                        give(&blocks, block);
                        break;
                case 2: /* a run of blocks */
                        for (uint32_t n = 0; n < 64; n++)
                                give(&blocks, block + n);
                        break;
                default:
                        find(&blocks);
                }
                fuzz_require(blocks.free_count == plain.free_count);
                fuzz_require(nd_blocks_is_free(&blocks, block) == (block < plain.count && plain.free[block]));
        }
        return 0;
}
