/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - replies, and the record of one that must survive the server
 *
 * An operation that was done but not answered must not be done twice: mkdir would answer EEXIST the
 * second time. So the sequence is
 *      bridge_reply_begin()   before the operation: phase BEGUN, and which inodes had the names
 *      (the operation)
 *      bridge_reply()         phase DONE with the reply, then the reply is sent, then `answered`
 * A server that dies before DONE leaves an operation that may or may not have happened. The next
 * one repeats it and, where it then fails, compares with the record: see create.c. After DONE the
 * recorded reply is sent again; the kernel ignores it if it has got it already. Only so is it known
 * what the kernel has: the lookups of a reply that it got must not be taken back. */
#pragma once

#include <sys/stat.h>

#include "bridge/thread.h"

/* Records what the names of a request were before it. */
void bridge_reply_begin(struct bridge_thread *thread, uint64_t first_inode, uint64_t second_inode);

/* Sends a reply: an error (negative errno), or bytes; more than BRIDGE_REPLY of them are in the
 * thread's buffer. */
void bridge_reply(struct bridge_thread *thread, const struct fuse_in_header *head, int error, const void *bytes,
                  size_t length);
static inline void bridge_reply_error(struct bridge_thread *thread, const struct fuse_in_header *head, int error) {
        bridge_reply(thread, head, error, nullptr, 0);
}

/* The request is answered later, by another thread, or never. */
void bridge_reply_none(struct bridge_thread *thread, const struct fuse_in_header *head);

/* For a request that an earlier server had: true if its reply was recorded, and has now been sent.
 * Else everything that the reply would have given to the kernel is taken back. */
[[nodiscard]] bool bridge_reply_recorded(struct bridge_thread *thread, const struct fuse_in_header *head);

void bridge_reply_entry(const struct bridge_shared *shared, const struct stat *st, uint64_t id, struct fuse_entry_out *ret);

/* Makes the kernel ask for a file's attributes again. */
void bridge_reply_invalidate(const struct bridge_thread *thread, uint64_t id);
