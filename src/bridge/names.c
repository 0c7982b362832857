/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - entries of directories: look up, link, remove, rename */
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bridge/identity.h"
#include "bridge/node.h"
#include "bridge/operations.h"
#include "bridge/reply.h"
#include "sys/calls.h"

uint64_t bridge_inode_of(const struct bridge_node *parent, const char *name) {
        struct stat st;

        return fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

void bridge_reply_looked_up(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *parent) {
        struct fuse_entry_out entry;
        struct stat st;
        uint64_t id;
        int r = bridge_node_lookup(thread, parent, request->name, &st, &id);

        if (r == -ENOENT && request->head->opcode == FUSE_LOOKUP) {
                /* Node 0: the kernel may cache that the name does not exist. */
                bridge_reply_entry(bridge_shared(thread), nullptr, 0, &entry);
                bridge_reply(thread, request->head, 0, &entry, sizeof entry);
                return;
        }
        if (r == 0)
                bridge_reply_entry(bridge_shared(thread), &st, id, &entry);
        bridge_reply(thread, request->head, r, &entry, sizeof entry);
}

void bridge_lookup(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        bridge_identity_for(thread, request->head, node);
        bridge_reply_looked_up(thread, request, node);
}

void bridge_link(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        const struct fuse_link_in *argument = request->argument;
        struct bridge_node *old = nullptr;
        int r = bridge_node_get(thread->state, argument->oldnodeid, &old);

        if (r == 0) {
                bridge_reply_begin(thread, bridge_inode_of(node, request->name), 0);
                bridge_identity_for(thread, request->head, node);
                r = nd_sys->linkat(AT_FDCWD, bridge_fd_name(old->fd).text, node->fd, request->name, AT_SYMLINK_FOLLOW) < 0
                            ? -errno
                            : 0;
                if (r == -EEXIST && thread->again && thread->slot->first_inode == 0 &&
                    bridge_inode_of(node, request->name) == old->inode)
                        r = 0;
        }
        bridge_node_put(thread->state, old);
        if (r < 0)
                bridge_reply_error(thread, request->head, r);
        else
                bridge_reply_looked_up(thread, request, node);
}

/* ---- removing and renaming ---- */

void bridge_unlink(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        int flags = request->head->opcode == FUSE_RMDIR ? AT_REMOVEDIR : 0, r;
        struct bridge_named named;

        bridge_identity_for(thread, request->head, node);
        bridge_reply_begin(thread, bridge_node_let_go(thread, node, request->name, &named), 0);
        r = nd_sys->unlinkat(node->fd, request->name, flags) < 0 ? -errno : 0;
        if (bridge_identity_retry(thread, node, request->name, r))
                r = nd_sys->unlinkat(node->fd, request->name, flags) < 0 ? -errno : 0;
        if (r == -ENOENT && thread->again && thread->slot->first_inode != 0)
                r = 0;
        if (r == 0)
                bridge_node_removed(thread->state, &named);
        bridge_reply_error(thread, request->head, r);
}

/* Whether the first server has done it: the source's inode has the new name. */
static bool was_renamed(const struct bridge_thread *thread, const struct bridge_node *from, const char *name,
                        const struct bridge_node *to, const char *new_name) {
        const struct bridge_slot *slot = thread->slot;

        return thread->again && slot->first_inode != 0 && bridge_inode_of(to, new_name) == slot->first_inode &&
               bridge_inode_of(from, name) != slot->first_inode;
}

/* The nodes that have moved get their new names. */
static void note_rename(struct bridge_thread *thread, const struct bridge_request *request, const struct bridge_node *from,
                        const struct bridge_node *to, unsigned flags) {
        struct stat st;

        if (fstatat(to->fd, request->second, &st, AT_SYMLINK_NOFOLLOW) == 0)
                bridge_node_renamed(thread->state, &st, to, request->second);
        if (flags & RENAME_EXCHANGE && fstatat(from->fd, request->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                bridge_node_renamed(thread->state, &st, from, request->name);
}

static int rename_entry(const struct bridge_request *request, const struct bridge_node *from, const struct bridge_node *to,
                        unsigned flags) {
        /* glibc would use renameat() without flags, which the filter does not allow. */
        return syscall(SYS_renameat2, from->fd, request->name, to->fd, request->second, flags) < 0 ? -errno : 0;
}

static int rename_node(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *from,
                       struct bridge_node *to, unsigned flags) {
        uint64_t first = bridge_inode_of(from, request->name), second = 0;
        struct bridge_named replaced = {};
        int r;

        if (was_renamed(thread, from, request->name, to, request->second)) {
                note_rename(thread, request, from, to, flags);
                return 0; /* a second exchange would undo the first */
        }
        if (!(flags & RENAME_EXCHANGE))
                second = bridge_node_let_go(thread, to, request->second, &replaced);
        bridge_reply_begin(thread, first, second);
        r = rename_entry(request, from, to, flags);
        if (bridge_identity_retry(thread, from, request->name, r))
                r = rename_entry(request, from, to, flags);
        if (r < 0)
                return r;
        if (second != first)
                bridge_node_removed(thread->state, &replaced);
        note_rename(thread, request, from, to, flags);
        return 0;
}

void bridge_rename(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        const struct fuse_rename2_in *argument = request->argument;
        unsigned flags = request->head->opcode == FUSE_RENAME2 ? argument->flags : 0;
        struct bridge_node *to = nullptr;
        int r = bridge_node_get(thread->state, argument->newdir, &to);

        if (r == 0 && flags & ~(unsigned) (RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
                r = -EINVAL;
        if (r == 0) {
                if (flags & RENAME_WHITEOUT)
                        bridge_identity_creator(thread, request);
                else
                        bridge_identity_for(thread, request->head, node);
                r = rename_node(thread, request, node, to, flags);
        }
        bridge_node_put(thread->state, to);
        bridge_reply_error(thread, request->head, r);
}
