/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - ages, sizes and IDs as text for people */
#pragma once

#include <nodens.pb-c.h>

/* "65536-131071", or "node" for a pod with the node's users. The caller's to free. */
[[nodiscard]] char *cli_format_ids(const Nodens__V1__PodEntry *pod);

enum {
        FORMAT_AGE = 24, /* bytes of the buffers, which are the caller's */
        FORMAT_SIZE = 16,
};

/* "3d", "5h", "12m", "40s" since a time in nanoseconds; "-" for none. */
const char *cli_format_age(uint64_t at, uint64_t now, char ret[static FORMAT_AGE]);

/* "12.3 MB". */
const char *cli_format_size(uint64_t bytes, char ret[static FORMAT_SIZE]);
