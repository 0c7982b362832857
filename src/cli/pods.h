/* SPDX-License-Identifier: Apache-2.0 */
/* pods.h - `nodens pods`: the pods of this node, as nodens-cri knows them */
#pragma once

#include <nodens.pb-c.h>

#include "base/option.h"

struct pods_settings {
        const char *socket;
        bool json;
};

extern const struct nd_option pods_options[];
int pods_run(void *settings, int operand_count, char **operands);

/* "65536-131071", or "node" for a pod with the node's users. The caller's to free. */
[[nodiscard]] char *pods_ids(const Nodens__V1__PodEntry *pod);

/* "3d", "5h", "12m", "40s" since a time in nanoseconds; "-" for none. */
enum { PODS_AGE_TEXT = 24 };
const char *pods_age(uint64_t at, uint64_t now, char ret[static PODS_AGE_TEXT]);
