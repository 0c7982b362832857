/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - open files
 *
 * Where the kernel supports it (6.9) and we have CAP_SYS_ADMIN, data is passed through: the kernel
 * reads and writes the backing file itself, and only open, close, fsync and the like come here. All
 * opens of a file use one registration, with the credentials of the first. */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "bridge/identity.h"
#include "bridge/node.h"
#include "bridge/operations.h"
#include "bridge/reply.h"
#include "sys/calls.h"

static bool passes_through(const struct bridge_thread *thread) {
        return bridge_shared(thread)->flags & FUSE_PASSTHROUGH;
}

int bridge_file_flags(const struct bridge_thread *thread, int flags) {
        /* The kernel has dealt with O_CREAT, O_EXCL and O_TRUNC. It says where to append, unless
         * the backing file does that itself. */
        return flags &
               (O_ACCMODE | O_NONBLOCK | O_SYNC | O_DSYNC | O_NOATIME | O_LARGEFILE | (passes_through(thread) ? O_APPEND : 0));
}

int bridge_file_fd(const struct bridge_thread *thread, uint64_t handle) {
        const struct bridge_file *file = bridge_state_file_get(thread->state, handle);

        return file ? file->fd : -EBADF;
}

/* ---- open ---- */

/* A remote filesystem removes set-ID bits at a write by looking at the credentials of the
 * registration. Writes to such a file come here instead. */
static bool must_write_here(const struct bridge_thread *thread, int fd, const struct stat *st) {
        return bridge_shared(thread)->facts.remote && st->st_mode & (S_ISUID | S_ISGID) &&
               (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

static void pass_through(struct bridge_thread *thread, struct bridge_node *node, int fd, const struct stat *st,
                         struct fuse_open_out *ret) {
        struct fuse_backing_map map = {.fd = fd};

        if (!passes_through(thread))
                return;
        /* The kernel allows no mixture of cached and passed through opens of a file. */
        ret->open_flags |= FOPEN_DIRECT_IO;
        if (node->backing == 0 && must_write_here(thread, fd, st))
                return;
        bridge_identity_owner(thread, st->st_uid, st->st_gid);
        (void) pthread_mutex_lock(&thread->state->lock);
        if (node->backing == 0) {
                int backing = ioctl(bridge_shared(thread)->device, FUSE_DEV_IOC_BACKING_OPEN, &map);

                node->backing = backing > 0 ? backing : 0;
        }
        if (node->backing > 0) {
                ret->backing_id = node->backing;
                ret->open_flags = (ret->open_flags & ~(uint32_t) FOPEN_DIRECT_IO) | FOPEN_PASSTHROUGH;
        }
        (void) pthread_mutex_unlock(&thread->state->lock);
}

uint64_t bridge_file_add(struct bridge_thread *thread, struct bridge_node *node, int owned_fd) {
        nd_autoclose int fd = owned_fd;
        uint64_t handle;

        (void) pthread_mutex_lock(&thread->state->lock);
        handle = bridge_state_file_new(thread->state, fd, node);
        thread->slot->file = handle;
        (void) pthread_mutex_unlock(&thread->state->lock);
        if (handle > 0)
                nd_take_fd(fd);
        return handle;
}

int bridge_file_opened(struct bridge_thread *thread, struct bridge_node *node, int fd, const struct stat *st,
                       struct fuse_open_out *ret) {
        ret->fh = bridge_file_add(thread, node, fd);
        if (ret->fh == 0)
                return -ENFILE;
        pass_through(thread, node, fd, st, ret);
        return 0;
}

/* The NFS client writes one page at a time, and waits for each, where it does not know the file's
 * change attribute; an open by handle does not fetch it. */
static void fetch_change_attribute(int fd) {
        struct statx x;

        (void) !statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x);
}

void bridge_open(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        const struct fuse_open_in *argument = request->argument;
        struct fuse_open_out reply = {};
        struct stat st = {};
        int fd = -ENXIO, r;

        bridge_identity_for(thread, request->head, node);
        if (S_ISREG(node->mode)) /* others are opened by the pod's kernel alone */
                fd = bridge_node_open(thread, node, bridge_file_flags(thread, (int) argument->flags));
        if (fd < 0) {
                bridge_reply_error(thread, request->head, fd);
                return;
        }
        if (bridge_shared(thread)->facts.nfs && (argument->flags & O_ACCMODE) != O_RDONLY)
                fetch_change_attribute(fd);
        (void) fstat(fd, &st);
        r = bridge_file_opened(thread, node, fd, &st, &reply);
        /* Close-to-open: the kernel may have cached attributes from before another client wrote. */
        if (r == 0 && !bridge_node_has(node, &st)) {
                bridge_reply_invalidate(thread, request->head->nodeid);
                node->changed = 0;
        }
        bridge_reply(thread, request->head, r, &reply, sizeof reply);
}

void bridge_release(struct bridge_thread *thread, const struct bridge_request *request) {
        bridge_node_release(thread->state, ((const struct fuse_release_in *) request->argument)->fh);
        bridge_reply_error(thread, request->head, 0);
}

/* ---- data, where it is not passed through ---- */

void bridge_read(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_read_in *argument = request->argument;
        size_t size = argument->size < BRIDGE_REQUEST ? argument->size : BRIDGE_REQUEST;
        int fd = bridge_file_fd(thread, argument->fh);
        ssize_t length = fd < 0 ? -1 : pread(fd, thread->buffer, size, (off_t) argument->offset);

        if (fd >= 0 && length < 0)
                fd = -errno;
        bridge_reply(thread, request->head, length < 0 ? fd : 0, thread->buffer, length < 0 ? 0 : (size_t) length);
}

static int remove_setid(int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0 || !(st.st_mode & (S_ISUID | S_ISGID)))
                return 0;
        return nd_sys->fchmod(fd, bridge_mode_after_write(st.st_mode)) < 0 ? -errno : 0;
}

void bridge_write(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_write_in *argument = request->argument;
        struct fuse_write_out reply = {};
        int fd = bridge_file_fd(thread, argument->fh), r = fd < 0 ? fd : 0;
        ssize_t length;

        if (r == 0 && argument->write_flags & FUSE_WRITE_KILL_SUIDGID && bridge_shared(thread)->facts.remote)
                r = remove_setid(fd);
        if (r == 0) {
                length = nd_sys->pwrite(fd, request->data, request->data_length, (off_t) argument->offset);
                r = length < 0 ? -errno : 0;
                reply.size = length < 0 ? 0 : (uint32_t) length;
        }
        bridge_reply(thread, request->head, r, &reply, sizeof reply);
}

/* ---- the rest ---- */

/* A close() by the pod: errors of delayed writes are reported by a close() of ours. */
void bridge_flush(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_flush_in *argument = request->argument;
        int fd = bridge_file_fd(thread, argument->fh), copy;

        bridge_lock_unlock_all(thread, request->head->nodeid, argument->lock_owner);
        copy = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0)
                bridge_reply_error(thread, request->head, fd < 0 ? fd : -errno);
        else
                bridge_reply_error(thread, request->head, close(copy) < 0 ? -errno : 0);
}

void bridge_fsync(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_fsync_in *argument = request->argument;
        int fd = bridge_file_fd(thread, argument->fh), r = fd < 0 ? fd : 0;

        if (r == 0)
                r = (argument->fsync_flags & FUSE_FSYNC_FDATASYNC ? fdatasync(fd) : nd_sys->fsync(fd)) < 0 ? -errno : 0;
        bridge_reply_error(thread, request->head, r);
}

void bridge_fallocate(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_fallocate_in *argument = request->argument;
        int fd = bridge_file_fd(thread, argument->fh), r = fd < 0 ? fd : 0;

        if (r == 0)
                r = fallocate(fd, (int) argument->mode, (off_t) argument->offset, (off_t) argument->length) < 0 ? -errno : 0;
        bridge_reply_error(thread, request->head, r);
}

void bridge_lseek(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_lseek_in *argument = request->argument;
        struct fuse_lseek_out reply = {};
        int fd = bridge_file_fd(thread, argument->fh), r = fd < 0 ? fd : 0;
        off_t offset;

        if (r == 0) {
                offset = lseek(fd, (off_t) argument->offset, (int) argument->whence);
                r = offset < 0 ? -errno : 0;
                reply.offset = (uint64_t) offset;
        }
        bridge_reply(thread, request->head, r, &reply, sizeof reply);
}

void bridge_copy(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_copy_file_range_in *argument = request->argument;
        int from = bridge_file_fd(thread, argument->fh_in), to = bridge_file_fd(thread, argument->fh_out);
        off_t from_at = (off_t) argument->off_in, to_at = (off_t) argument->off_out;
        size_t length = argument->len < INT32_MAX ? (size_t) argument->len : INT32_MAX;
        struct fuse_write_out reply = {};
        int r = from < 0 ? from : to < 0 ? to : 0;
        ssize_t copied;

        if (r == 0) {
                copied = copy_file_range(from, &from_at, to, &to_at, length, 0);
                r = copied < 0 ? -errno : 0;
                reply.size = copied < 0 ? 0 : (uint32_t) copied;
        }
        bridge_reply(thread, request->head, r, &reply, sizeof reply);
}
