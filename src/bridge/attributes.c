/* SPDX-License-Identifier: Apache-2.0 */
/* attributes.c - attributes of files and of the filesystem */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "bridge/identity.h"
#include "bridge/node.h"
#include "bridge/operations.h"
#include "bridge/reply.h"
#include "sys/calls.h"

static void reply_attributes(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        struct fuse_entry_out entry;
        struct fuse_attr_out reply = {};
        struct stat st;
        int r = bridge_node_stat(thread, node->fd, &st);

        if (r == 0) {
                bridge_reply_entry(bridge_shared(thread), &st, request->head->nodeid, &entry);
                reply = (struct fuse_attr_out) {
                        .attr_valid = entry.attr_valid, .attr_valid_nsec = entry.attr_valid_nsec, .attr = entry.attr};
                bridge_node_note(node, &st);
        }
        bridge_reply(thread, request->head, r, &reply, sizeof reply);
}

void bridge_getattr(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        bridge_identity_for(thread, request->head, node);
        reply_attributes(thread, request, node);
}

static int change_owner(const struct bridge_thread *thread, const struct fuse_setattr_in *argument,
                        const struct bridge_node *node) {
        const struct bridge_settings *settings = &bridge_shared(thread)->settings;
        struct stat st;

        if (settings->force_owner)
                return 0;
        if (fstatat(node->fd, "", &st, AT_EMPTY_PATH) < 0)
                return -errno;
        /* The kernel lets root of the superblock's user namespace take files whose owner does not
         * exist there; on an idmapped mount it does not. */
        if (settings->mode == BRIDGE_MODE_USERNS && (st.st_uid >= settings->ids || st.st_gid >= settings->ids))
                return -EPERM;
        return nd_sys->fchownat(node->fd, "", argument->valid & FATTR_UID ? argument->uid : UINT32_MAX,
                                argument->valid & FATTR_GID ? argument->gid : UINT32_MAX, AT_EMPTY_PATH) < 0
                       ? -errno
                       : 0;
}

static int change_mode(const struct bridge_node *node, mode_t mode) {
        int r;

        if (mode & S_ISGID)
                bridge_identity_keep_setid(true);
        r = nd_sys->fchmodat(AT_FDCWD, bridge_fd_name(node->fd).text, mode, 0) < 0 ? -errno : 0;
        if (mode & S_ISGID)
                bridge_identity_keep_setid(false);
        return r;
}

static int remove_setid(const struct bridge_node *node) {
        struct stat st;

        if (fstatat(node->fd, "", &st, AT_EMPTY_PATH) < 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
                return 0;
        return change_mode(node, bridge_mode_after_write(st.st_mode));
}

static int change_size(const struct bridge_thread *thread, const struct fuse_setattr_in *argument,
                       const struct bridge_node *node) {
        int open_fd = argument->valid & FATTR_FH ? bridge_file_fd(thread, argument->fh) : -EBADF;
        nd_autoclose int fd = -EBADF;

        if (argument->valid & FATTR_KILL_SUIDGID && bridge_shared(thread)->facts.remote) {
                int r = remove_setid(node);

                if (r < 0)
                        return r;
        }
        if (open_fd < 0) {
                fd = nd_sys->openat(AT_FDCWD, bridge_fd_name(node->fd).text, O_WRONLY | O_NONBLOCK | O_CLOEXEC, 0);
                if (fd < 0)
                        return -errno;
        }
        return nd_sys->ftruncate(open_fd < 0 ? fd : open_fd, (off_t) argument->size) < 0 ? -errno : 0;
}

static int change_times(const struct fuse_setattr_in *argument, const struct bridge_node *node) {
        struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};

        if (argument->valid & FATTR_ATIME_NOW)
                times[0].tv_nsec = UTIME_NOW;
        else if (argument->valid & FATTR_ATIME)
                times[0] = (struct timespec) {.tv_sec = (time_t) argument->atime, .tv_nsec = argument->atimensec};
        if (argument->valid & FATTR_MTIME_NOW)
                times[1].tv_nsec = UTIME_NOW;
        else if (argument->valid & FATTR_MTIME)
                times[1] = (struct timespec) {.tv_sec = (time_t) argument->mtime, .tv_nsec = argument->mtimensec};
        return nd_sys->utimensat(node->fd, "", times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int change(struct bridge_thread *thread, const struct fuse_setattr_in *argument, const struct bridge_node *node) {
        int r = 0;

        if (argument->valid & (FATTR_UID | FATTR_GID))
                r = change_owner(thread, argument, node);
        if (r == 0 && argument->valid & FATTR_MODE)
                r = change_mode(node, argument->mode & 07777);
        if (r == 0 && argument->valid & FATTR_SIZE)
                r = change_size(thread, argument, node);
        if (r == 0 && argument->valid & (FATTR_ATIME | FATTR_MTIME))
                r = change_times(argument, node);
        return r;
}

void bridge_setattr(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        int r;

        bridge_identity_for(thread, request->head, node);
        r = change(thread, request->argument, node);
        if (r < 0)
                bridge_reply_error(thread, request->head, r);
        else
                reply_attributes(thread, request, node);
}

void bridge_readlink(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        char *target = (char *) thread->buffer;
        ssize_t length = readlinkat(node->fd, "", target, PATH_MAX);

        bridge_reply(thread, request->head, length < 0 ? -errno : 0, target, length < 0 ? 0 : (size_t) length);
}

void bridge_statfs(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        struct fuse_statfs_out reply = {};
        struct statfs fs;

        if (fstatfs(node->fd, &fs) < 0) {
                bridge_reply_error(thread, request->head, -errno);
                return;
        }
        reply.st = (struct fuse_kstatfs) {
                .blocks = fs.f_blocks,
                .bfree = fs.f_bfree,
                .bavail = fs.f_bavail,
                .files = fs.f_files,
                .ffree = fs.f_ffree,
                .bsize = (uint32_t) fs.f_bsize,
                .namelen = (uint32_t) fs.f_namelen,
                .frsize = (uint32_t) (fs.f_frsize > 0 ? fs.f_frsize : fs.f_bsize),
        };
        bridge_reply(thread, request->head, 0, &reply, sizeof reply);
}

void bridge_syncfs(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        nd_autoclose int fd = bridge_node_open(thread, node, O_RDONLY | O_NONBLOCK);
        int r = fd < 0 ? fd : nd_sys->syncfs(fd) < 0 ? -errno : 0;

        bridge_reply_error(thread, request->head, r);
}
