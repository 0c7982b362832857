/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.h - the contents of a pod's `userns` file, byte for byte equal to the kubelet's */
#pragma once

#include "base/error.h"
#include "userns/range.h"

enum {
        ND_MAPPING_CEILING = 64 * 1024, /* the kubelet writes at most 141 bytes */
        ND_MAPPING_SALVAGE = 64,        /* blocks salvaged from a file that is not valid JSON */
};

/* The raw contents of the file, before any check. Only the first line of each map is kept; more
 * than one is refused. */
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

/* Parses as the kubelet's JSON decoder does, equally lenient: keys in any case, unknown keys, null
 * for absent, the last of several. Errors begin as the kubelet's, "invalid user namespace mappings
 * file: "; the reason is our decoder's. */
[[nodiscard]] struct nd_error *nd_mapping_parse(const char *bytes, size_t length, struct nd_mapping *ret);

/* The kubelet's checks of the contents, with its texts; the manager does the checks that need its
 * state. */
[[nodiscard]] struct nd_error *nd_mapping_check(const struct nd_mapping *mapping);

/* The only form that the kubelet writes: no spaces, no newline. */
[[nodiscard]] char *nd_mapping_format(uint32_t host, uint32_t length);

/* For an unusable file: returns every ID that its bytes still name as a host ID, at most
 * ND_MAPPING_SALVAGE. Holding a block too many is better than giving it to a second pod. */
void nd_mapping_salvage(const char *bytes, size_t length, struct nd_userns_extents *ret);
