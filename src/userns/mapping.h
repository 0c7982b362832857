/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.h - the contents of a pod's `userns` file, byte for byte as the kubelet's */
#pragma once

#include "base/error.h"
#include "userns/range.h"

enum {
        ND_MAPPING_CEILING = 64 * 1024, /* the kubelet writes 141 bytes at most */
        ND_MAPPING_SALVAGE = 64,        /* blocks remembered from a file that cannot be read as JSON */
};

/* As the file has it, before anything is checked. Only the first line of each map is kept; more than one is refused. */
struct nd_mapping_line {
        uint32_t host;
        uint32_t container;
        uint32_t length;
};

struct nd_mapping {
        size_t uid_lines;
        size_t gid_lines;
        struct nd_mapping_line uid;
        struct nd_mapping_line gid;
};

/* Reads what the kubelet's JSON decoder would read, with its leniency: keys in any case, unknown keys, null for absent, the
 * last of several. Its errors begin as the kubelet's, "invalid user namespace mappings file: "; the reason is our decoder's. */
[[nodiscard]] struct nd_error *nd_mapping_parse(const char *bytes, size_t length, struct nd_mapping *ret);

/* The kubelet's checks of what it read, with its words; those that need the manager's state are the manager's. */
[[nodiscard]] struct nd_error *nd_mapping_check(const struct nd_mapping *mapping);

/* The one form that the kubelet writes: no blanks, no newline. */
[[nodiscard]] char *nd_mapping_format(uint32_t host, uint32_t length);

/* For a file that could not be used: every ID that its bytes still name as a host ID, at most ND_MAPPING_SALVAGE. Better to hold a
 * block too many than to give it to a second pod. */
void nd_mapping_salvage(const char *bytes, size_t length, struct nd_userns_extents *ret);
