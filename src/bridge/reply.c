/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - see reply.h */
#include "bridge/reply.h"

#include <string.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "bridge/node.h"

/* Takes back what the record says that the kernel would have got. */
static void take_back(struct bridge_thread *thread) {
        struct bridge_slot *slot = thread->slot;
        uint32_t count = slot->grants;
        uint64_t file = slot->file;

        slot->grants = 0;
        slot->file = 0;
        if (file > 0)
                bridge_node_release(thread->state, file);
        for (uint32_t i = 0; i < count && i < BRIDGE_GRANTS; i++)
                bridge_node_forget(thread->state, slot->granted[i], 1);
}

static void finish(struct bridge_slot *slot, uint64_t unique) {
        slot->file = 0;
        slot->grants = 0;
        __atomic_store_n(&slot->answered, unique, __ATOMIC_SEQ_CST);
}

/* Returns false if the kernel does not wait for this reply. */
static bool send_reply(const struct bridge_thread *thread, uint64_t unique, int error, const void *bytes, size_t length) {
        struct fuse_out_header head = {.len = (uint32_t) (sizeof head + length), .error = error, .unique = unique};
        struct iovec parts[] = {{.iov_base = &head, .iov_len = sizeof head}, {.iov_base = (void *) bytes, .iov_len = length}};

        return writev(bridge_shared(thread)->device, parts, length > 0 ? 2 : 1) >= 0 || errno != ENOENT;
}

/* The record is of another request now: first it says nothing. */
static void start_record(struct bridge_slot *slot, uint64_t unique) {
        if (slot->unique == unique)
                return;
        __atomic_store_n(&slot->phase, BRIDGE_IDLE, __ATOMIC_SEQ_CST);
        __atomic_store_n(&slot->unique, unique, __ATOMIC_SEQ_CST);
}

void bridge_reply_begin(struct bridge_thread *thread, uint64_t first_inode, uint64_t second_inode) {
        struct bridge_slot *slot = thread->slot;

        if (thread->again)
                return; /* what the first server saw counts */
        start_record(slot, bridge_request_head(thread->request)->unique);
        slot->first_inode = first_inode;
        slot->second_inode = second_inode;
        __atomic_store_n(&slot->phase, BRIDGE_BEGUN, __ATOMIC_SEQ_CST);
}

void bridge_reply(struct bridge_thread *thread, const struct fuse_in_header *head, int error, const void *bytes,
                  size_t length) {
        struct bridge_slot *slot = thread->slot;

        if (error < 0)
                length = 0;
        nd_assert(length <= BRIDGE_REPLY || bytes == thread->buffer);
        start_record(slot, head->unique);
        slot->error = error;
        slot->length = (uint32_t) length;
        slot->in_buffer = length > BRIDGE_REPLY;
        if (length > 0 && !slot->in_buffer)
                memcpy(slot->reply, bytes, length);
        __atomic_store_n(&slot->phase, BRIDGE_DONE, __ATOMIC_SEQ_CST);
        if (!send_reply(thread, head->unique, error, bytes, length) || error < 0)
                take_back(thread); /* the caller was interrupted, or gets nothing */
        finish(slot, head->unique);
}

void bridge_reply_none(struct bridge_thread *thread, const struct fuse_in_header *head) {
        finish(thread->slot, head->unique);
}

bool bridge_reply_recorded(struct bridge_thread *thread, const struct fuse_in_header *head) {
        struct bridge_slot *slot = thread->slot;

        if (slot->unique == head->unique && slot->phase == BRIDGE_DONE) {
                /* It may have been sent already; then the kernel refuses this one, and keeps what
                 * it got. */
                (void) send_reply(thread, head->unique, slot->error, slot->in_buffer ? thread->buffer : slot->reply,
                                  slot->length);
                finish(slot, head->unique);
                return true;
        }
        take_back(thread);
        return false;
}

static void split_ms(uint32_t ms, uint64_t *ret_s, uint32_t *ret_ns) {
        *ret_s = ms / 1000;
        *ret_ns = ms % 1000 * 1'000'000;
}

static void fill_attributes(const struct bridge_shared *shared, const struct stat *st, struct fuse_attr *ret) {
        bool forced = shared->settings.force_owner;

        *ret = (struct fuse_attr) {
                .ino = st->st_ino,
                .size = (uint64_t) st->st_size,
                .blocks = (uint64_t) st->st_blocks,
                .atime = (uint64_t) st->st_atim.tv_sec,
                .mtime = (uint64_t) st->st_mtim.tv_sec,
                .ctime = (uint64_t) st->st_ctim.tv_sec,
                .atimensec = (uint32_t) st->st_atim.tv_nsec,
                .mtimensec = (uint32_t) st->st_mtim.tv_nsec,
                .ctimensec = (uint32_t) st->st_ctim.tv_nsec,
                .mode = st->st_mode,
                .nlink = (uint32_t) st->st_nlink,
                .uid = forced ? shared->settings.owner_uid : st->st_uid,
                .gid = forced ? shared->settings.owner_gid : st->st_gid,
                .rdev = (uint32_t) st->st_rdev,
                .blksize = (uint32_t) st->st_blksize,
        };
}

void bridge_reply_entry(const struct bridge_shared *shared, const struct stat *st, uint64_t id, struct fuse_entry_out *ret) {
        *ret = (struct fuse_entry_out) {.nodeid = id};
        split_ms(shared->settings.entry_ms, &ret->entry_valid, &ret->entry_valid_nsec);
        split_ms(shared->settings.attribute_ms, &ret->attr_valid, &ret->attr_valid_nsec);
        if (id > 0)
                fill_attributes(shared, st, &ret->attr);
}

void bridge_reply_invalidate(const struct bridge_thread *thread, uint64_t id) {
        struct {
                struct fuse_out_header head;
                struct fuse_notify_inval_inode_out body;
        } message = {.head = {.len = sizeof message, .error = FUSE_NOTIFY_INVAL_INODE}, .body = {.ino = id, .off = -1}};

        (void) !write(bridge_shared(thread)->device, &message, sizeof message);
}
