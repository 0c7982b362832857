/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-fuse-request.c - requests of the FUSE protocol: everything that is decoded lies within the
 * bytes, and names are single path components. The first byte chooses the format of SETXATTR. */
#include <limits.h>
#include <string.h>

#include <unit/fuzz.h>

#include "bridge/fuse-request.h"

static const unsigned char *begin, *end;

static void lies_within(const void *bytes, size_t length) {
        const unsigned char *at = bytes;

        fuzz_require(at >= begin && at <= end && length <= (size_t) (end - at));
}

static void is_component(const char *name) {
        lies_within(name, strlen(name) + 1);
        fuzz_require(strlen(name) <= NAME_MAX && !strchr(name, '/') && *name != '\0' && strcmp(name, ".") != 0 &&
                     strcmp(name, "..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        alignas(8) static unsigned char bytes[1 << 16];
        struct fuse_in_header *head = (void *) bytes;
        struct bridge_request request;

        if (size < 1 || size > sizeof bytes)
                return 0;
        memcpy(bytes, data + 1, size - 1); /* the kernel's buffer is aligned */
        begin = bytes;
        end = bytes + size - 1;
        /* The kernel's own lengths are right. */
        if (size - 1 >= sizeof(struct fuse_in_header) && data[0] & 2)
                head->len = (uint32_t) (size - 1);
        if (bridge_request_decode(bytes, size - 1, data[0] & 1, &request) < 0)
                return 0;
        fuzz_require(request.head == (const void *) bytes);
        if (request.argument)
                lies_within(request.argument, 1);
        if (request.data)
                lies_within(request.data, request.data_length);
        if (request.second)
                lies_within(request.second, strlen(request.second) + 1);
        if (request.name && request.head->opcode != FUSE_SETXATTR && request.head->opcode != FUSE_GETXATTR &&
            request.head->opcode != FUSE_REMOVEXATTR)
                is_component(request.name);
        return 0;
}
