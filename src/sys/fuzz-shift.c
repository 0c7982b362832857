/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-shift.c - attributes of a layer's files, whose IDs the image chooses: in an ACL only the IDs
 * of named users and groups change, to IDs of the range or to 0, and a value grows by at most
 * ND_SHIFT_GROWTH bytes
 *
 * The first byte chooses the attribute, the next twelve the range. */
#include <string.h>

#include <unit/fuzz.h>

#include "sys/tree-copy.h"

enum { HEAD = 13, ACL_HEADER = 4, ACL_ENTRY = 8, ACL_ID = 4, ACL_USER = 2, ACL_GROUP = 8, VALUE_BYTES = 64 * 1024 };

static uint32_t number(const uint8_t *at) {
        return (uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24;
}

static bool in_range(uint32_t first, uint32_t count, uint32_t id) {
        return id == 0 || (uint32_t) (id - first) < count;
}

static void check_acl(const struct nd_tree_shift *shift, const uint8_t *before, const uint8_t *after, size_t length) {
        size_t at = ACL_HEADER;

        fuzz_require(memcmp(before, after, length < ACL_HEADER ? length : ACL_HEADER) == 0);
        for (; at + ACL_ENTRY <= length; at += ACL_ENTRY) {
                unsigned tag = before[at] | (unsigned) before[at + 1] << 8;

                fuzz_require(memcmp(before + at, after + at, ACL_ID) == 0);
                if (tag == ACL_USER || tag == ACL_GROUP)
                        fuzz_require(in_range(tag == ACL_USER ? shift->uid : shift->gid, shift->count,
                                              number(after + at + ACL_ID)));
                else
                        fuzz_require(memcmp(before + at, after + at, ACL_ENTRY) == 0);
        }
        fuzz_require(at >= length || memcmp(before + at, after + at, length - at) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default", "security.capability",
                                            "user.name"};
        struct nd_tree_shift shift;
        nd_autofree unsigned char *value = nullptr;
        const char *name;
        size_t length, after;

        if (size < HEAD || size - HEAD > VALUE_BYTES)
                return 0;
        shift = (struct nd_tree_shift) {.uid = number(data + 1), .gid = number(data + 5), .count = number(data + 9)};
        name = names[data[0] % nd_count_of(names)];
        length = size - HEAD;
        value = nd_malloc(length + ND_SHIFT_GROWTH);
        memcpy(value, data + HEAD, length);
        after = nd_tree_shift_attribute(&shift, name, value, length);
        fuzz_require(after >= length && after <= length + ND_SHIFT_GROWTH);
        if (strncmp(name, "system.", strlen("system.")) == 0)
                check_acl(&shift, data + HEAD, value, length);
        else if (after == length)
                fuzz_require(memcmp(data + HEAD, value, length) == 0);
        return 0;
}
