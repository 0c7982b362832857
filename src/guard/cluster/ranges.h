/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.h - blocks of user IDs for namespaces, and the SELinux level that goes with each
 *
 * OpenShift's numbers: 100,000 blocks of 10,000 IDs from 1,000,000,000 on; the level of block n is
 * the pair of categories with the number 5n in co-lexicographic order, the higher one first. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
        GUARD_RANGE_FIRST = 1000000000,
        GUARD_RANGE_SIZE = 10000,
        GUARD_RANGE_BLOCKS = 100000,
        GUARD_RANGE_LABELS = 5, /* per block */
        GUARD_RANGE_NONE = UINT32_MAX >> 1,
        GUARD_RANGE_TEXT = 64,
};

/* The set of taken blocks. */
struct guard_ranges {
        uint64_t bits[(GUARD_RANGE_BLOCKS + 63) / 64];
        uint32_t taken;
        uint32_t hint; /* no block below is free */
};

bool guard_ranges_has(const struct guard_ranges *ranges, uint32_t block);
void guard_ranges_take(struct guard_ranges *ranges, uint32_t block);
void guard_ranges_release(struct guard_ranges *ranges, uint32_t block);
/* Takes the first free block. Returns GUARD_RANGE_NONE when all are taken. */
uint32_t guard_ranges_next(struct guard_ranges *ranges);

/* Returns the block of an annotation "FIRST/COUNT"; GUARD_RANGE_NONE if it is not one of our
 * blocks, but a range chosen otherwise. */
uint32_t guard_ranges_block(const char *uid_range);

void guard_ranges_uids(uint32_t block, char text[static GUARD_RANGE_TEXT]);
void guard_ranges_mcs(uint32_t block, char text[static GUARD_RANGE_TEXT]);

/* The form in the cluster: base64 of the bits, without the free end. */
[[nodiscard]] char *guard_ranges_encode(const struct guard_ranges *ranges);
[[nodiscard]] struct nd_error *guard_ranges_decode(const char *text, size_t length, struct guard_ranges *ret);
