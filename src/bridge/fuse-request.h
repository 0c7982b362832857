/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-request.h - decodes requests of the FUSE protocol, without I/O
 *
 * The kernel writes the headers, a pod chooses names, values and data. A request that is shorter
 * than its opcode requires, or whose names are not terminated or not a single path component, is
 * refused here, so that the operations need no such checks. */
#pragma once

#include <linux/fuse.h>
#include <stddef.h>
#include <stdint.h>

/* A decoded request; all pointers point into the bytes it was decoded from. */
struct bridge_request {
        const struct fuse_in_header *head;
        const void *argument; /* the opcode's own structure, if it has one */
        const char *name;     /* nullptr if the opcode has none */
        const char *second;   /* target of a rename or of a symbolic link */
        const void *data;     /* of WRITE, SETXATTR and BATCH_FORGET */
        size_t data_length;
        /* The one supplementary group of the caller that a new file may get; -1 = none. */
        uint32_t group;
};

/* Returns 0 or -errno: -EIO for malformed bytes, -ENOSYS for an opcode that is not implemented,
 * -EINVAL or -ENAMETOOLONG for a name. If the head is complete @ret->head is set in any case.
 * @long_setxattr: FUSE_SETXATTR_EXT was negotiated. */
[[nodiscard]] int bridge_request_decode(const void *bytes, size_t length, bool long_setxattr, struct bridge_request *ret);
