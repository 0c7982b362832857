/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/cluster/ranges.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "policy/scc.h"

bool guard_ranges_has(const struct guard_ranges *ranges, uint32_t block) {
        return block < GUARD_RANGE_BLOCKS && ranges->bits[block / 64] & UINT64_C(1) << block % 64;
}

void guard_ranges_take(struct guard_ranges *ranges, uint32_t block) {
        if (block >= GUARD_RANGE_BLOCKS || guard_ranges_has(ranges, block))
                return;
        ranges->bits[block / 64] |= UINT64_C(1) << block % 64;
        ranges->taken++;
}

void guard_ranges_release(struct guard_ranges *ranges, uint32_t block) {
        if (!guard_ranges_has(ranges, block))
                return;
        ranges->bits[block / 64] &= ~(UINT64_C(1) << block % 64);
        ranges->taken--;
        if (block < ranges->hint)
                ranges->hint = block;
}

uint32_t guard_ranges_next(struct guard_ranges *ranges) {
        for (uint32_t block = ranges->hint; block < GUARD_RANGE_BLOCKS; block++) {
                if (guard_ranges_has(ranges, block))
                        continue;
                guard_ranges_take(ranges, block);
                ranges->hint = block + 1;
                return block;
        }
        return GUARD_RANGE_NONE;
}

uint32_t guard_ranges_block(const char *uid_range) {
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_scc_id_pair range;
        int64_t offset;

        error = nd_scc_block_parse(uid_range, &range);
        if (error)
                return GUARD_RANGE_NONE;
        offset = range.min.value - GUARD_RANGE_FIRST;
        if (offset < 0 || offset % GUARD_RANGE_SIZE != 0 || offset / GUARD_RANGE_SIZE >= GUARD_RANGE_BLOCKS ||
            range.max.value - range.min.value + 1 != GUARD_RANGE_SIZE)
                return GUARD_RANGE_NONE;
        return (uint32_t) (offset / GUARD_RANGE_SIZE);
}

void guard_ranges_uids(uint32_t block, char text[static GUARD_RANGE_TEXT]) {
        (void) snprintf(text, GUARD_RANGE_TEXT, "%u/%u", GUARD_RANGE_FIRST + block * GUARD_RANGE_SIZE,
                        (unsigned) GUARD_RANGE_SIZE);
}

void guard_ranges_mcs(uint32_t block, char text[static GUARD_RANGE_TEXT]) {
        uint32_t number = block * GUARD_RANGE_LABELS, high = 1;

        /* Pairs whose higher category is below @high: high * (high - 1) / 2. */
        while ((high + 1) * high / 2 <= number)
                high++;
        (void) snprintf(text, GUARD_RANGE_TEXT, "s0:c%u,c%u", high, number - high * (high - 1) / 2);
}

char *guard_ranges_encode(const struct guard_ranges *ranges) {
        uint8_t bytes[(GUARD_RANGE_BLOCKS + 7) / 8] = {};
        size_t length = 0;

        for (uint32_t block = 0; block < GUARD_RANGE_BLOCKS; block++)
                if (guard_ranges_has(ranges, block)) {
                        bytes[block / 8] |= (uint8_t) (1 << block % 8);
                        length = block / 8 + 1;
                }
        return nd_base64((const char *) bytes, length);
}

struct nd_error *guard_ranges_decode(const char *text, size_t length, struct guard_ranges *ret) {
        nd_autofree char *bytes = nullptr;
        size_t count;

        *ret = (struct guard_ranges) {};
        if (length > GUARD_RANGE_BLOCKS)
                return nd_error_new(ND_INVALID, 0, "the record of ID ranges is too long");
        nd_try(nd_base64_decode(text, length, &bytes, &count));
        if (count > (GUARD_RANGE_BLOCKS + 7) / 8)
                return nd_error_new(ND_INVALID, 0, "the record of ID ranges is too long");
        for (size_t i = 0; i < count * 8; i++)
                if ((uint8_t) bytes[i / 8] & 1 << i % 8)
                        guard_ranges_take(ret, (uint32_t) i);
        return nullptr;
}
