/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - formats ages, counts, sizes and IDs */
#pragma once

#include <nodens.pb-c.h>

/* Formats "65536-131071", or "node" for a pod with hostUsers. The caller frees the text. */
[[nodiscard]] char *cli_format_ids(const Nodens__V1__PodEntry *pod);

enum {
        FORMAT_AGE = 24, /* sizes of the caller's buffers */
        FORMAT_SIZE = 16,
        FORMAT_COUNT = 40,
};

/* Formats "3d", "5h", "12m", "40s" since a time in nanoseconds; "-" for none. */
const char *cli_format_age(uint64_t at, uint64_t now, char ret[static FORMAT_AGE]);

/* Formats "0 pods", "1 pod", "12 pods" from the noun "pod". */
const char *cli_format_count(uint64_t count, const char *noun, char ret[static FORMAT_COUNT]);

/* Formats "12.3 MB". */
const char *cli_format_size(uint64_t bytes, char ret[static FORMAT_SIZE]);
