/* SPDX-License-Identifier: Apache-2.0 */
/* create.c - new files, directories, links and special files
 *
 * A server may die after the system call and before the reply. The next one repeats the call and
 * gets EEXIST from the first one's success. Whether that is so is decided by the record of what the
 * name was before (reply.h): a name that did not exist and now is what the request would make was
 * made by the first server, since the pod's kernel allows one change of a directory at a time.
 * Another client of the same server that creates the same name in that moment cannot be told
 * apart. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "bridge/identity.h"
#include "bridge/node.h"
#include "bridge/operations.h"
#include "bridge/reply.h"
#include "sys/calls.h"

/* A device made here would be one of the host; the exception marks a removed file in overlayfs. */
static bool is_allowed_kind(const struct fuse_mknod_in *argument) {
        return S_ISREG(argument->mode) || S_ISFIFO(argument->mode) || S_ISSOCK(argument->mode) ||
               (S_ISCHR(argument->mode) && argument->rdev == 0);
}

/* The type of what a request makes. */
static mode_t kind_of(const struct bridge_request *request) {
        switch (request->head->opcode) {
        case FUSE_MKDIR:
                return S_IFDIR;
        case FUSE_SYMLINK:
                return S_IFLNK;
        default:
                return ((const struct fuse_mknod_in *) request->argument)->mode & S_IFMT;
        }
}

static int make(const struct bridge_request *request, int directory) {
        const struct fuse_mkdir_in *dir = request->argument;
        const struct fuse_mknod_in *special = request->argument;
        int r;

        switch (request->head->opcode) {
        case FUSE_MKDIR:
                (void) umask(dir->umask);
                r = nd_sys->mkdirat(directory, request->name, dir->mode & 07777);
                break;
        case FUSE_SYMLINK:
                r = nd_sys->symlinkat(request->second, directory, request->name);
                break;
        default:
                if (!is_allowed_kind(special))
                        return -EPERM;
                (void) umask(special->umask);
                r = nd_sys->mknodat(directory, request->name, special->mode, special->rdev);
        }
        r = r < 0 ? -errno : 0;
        (void) umask(0);
        return r;
}

/* The server refused its user what the pod's kernel has allowed, by a group or capability that it
 * does not know of. Then root creates it and gives it to the user. */
static bool may_retry_as_root(const struct bridge_thread *thread, int error) {
        const struct bridge_settings *settings = &bridge_shared(thread)->settings;

        return (error == -EACCES || error == -EPERM) && settings->as == BRIDGE_AS_ROOT && !settings->force_owner &&
               thread->uid != 0;
}

/* A directory with the set-group-ID bit gives its group to what is in it. */
static int give(const struct bridge_request *request, const struct bridge_node *parent, int fd, const char *name) {
        struct stat st;
        bool inherits = fstatat(parent->fd, "", &st, AT_EMPTY_PATH) == 0 && st.st_mode & S_ISGID;
        int flags = AT_SYMLINK_NOFOLLOW | (*name == '\0' ? AT_EMPTY_PATH : 0);

        return nd_sys->fchownat(fd, name, request->head->uid, inherits ? UINT32_MAX : request->head->gid, flags) < 0 ? -errno
                                                                                                                     : 0;
}

/* Whether the name, which did not exist before, is what the request would have made. */
static bool was_made(const struct bridge_thread *thread, const struct bridge_request *request,
                     const struct bridge_node *parent, mode_t kind) {
        char target[PATH_MAX];
        struct stat st;
        ssize_t length;

        if (!thread->again || thread->slot->first_inode != 0 ||
            fstatat(parent->fd, request->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & S_IFMT) != kind)
                return false;
        if (kind != S_IFLNK)
                return kind != S_IFREG || st.st_size == 0;
        length = readlinkat(parent->fd, request->name, target, sizeof target);
        return length == (ssize_t) strlen(request->second) && memcmp(target, request->second, (size_t) length) == 0;
}

void bridge_make(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        int r;

        bridge_reply_begin(thread, bridge_inode_of(node, request->name), 0);
        bridge_identity_creator(thread, request);
        r = make(request, node->fd);
        if (may_retry_as_root(thread, r)) {
                bridge_identity_root(thread);
                r = make(request, node->fd);
                if (r == 0)
                        r = give(request, node, node->fd, request->name);
        }
        if (r == -EEXIST && was_made(thread, request, node, kind_of(request)))
                r = 0;
        if (r < 0) {
                bridge_reply_error(thread, request->head, r);
                return;
        }
        bridge_identity_for(thread, request->head, node);
        bridge_reply_looked_up(thread, request, node);
}

/* ---- create and open ---- */

static int open_new(const struct bridge_request *request, const struct bridge_node *parent, int flags) {
        const struct fuse_create_in *argument = request->argument;
        int fd;

        (void) umask(argument->umask);
        if (request->head->opcode == FUSE_TMPFILE)
                fd = nd_sys->openat(parent->fd, ".", (flags & ~O_EXCL) | O_TMPFILE | O_CLOEXEC, argument->mode & 07777);
        else
                fd = nd_sys->openat(parent->fd, request->name, flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                                    argument->mode & 07777);
        fd = fd < 0 ? -errno : fd;
        (void) umask(0);
        return fd;
}

/* Opens the new file; the caller owns it. */
static int open_created(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *parent) {
        const struct fuse_create_in *argument = request->argument;
        int flags = bridge_file_flags(thread, (int) argument->flags) | ((int) argument->flags & O_EXCL), fd, r;

        bridge_identity_creator(thread, request);
        fd = open_new(request, parent, flags);
        if (may_retry_as_root(thread, fd)) {
                bridge_identity_root(thread);
                fd = open_new(request, parent, flags | O_EXCL);
                r = fd < 0 ? 0 : give(request, parent, fd, "");
                if (r < 0) {
                        (void) close(fd);
                        return r;
                }
        }
        if (fd == -EEXIST && request->name && was_made(thread, request, parent, S_IFREG))
                fd = open_new(request, parent, flags & ~O_EXCL);
        return fd;
}

static int create(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *parent,
                  struct fuse_entry_out *ret_entry, struct fuse_open_out *ret_open) {
        nd_autoclose int fd = open_created(thread, request, parent), path = -EBADF;
        struct bridge_node *node = nullptr;
        struct stat st;
        uint64_t id;
        int r;

        if (fd < 0)
                return fd;
        bridge_identity_root(thread);
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENXIO;
        (void) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        path = open(bridge_fd_name(fd).text, O_PATH | O_CLOEXEC);
        if (path < 0)
                return -errno;
        r = bridge_node_intern(thread, nd_take_fd(path), &st, parent, request->name, &id);
        if (r < 0)
                return r;
        r = bridge_node_get(thread->state, id, &node);
        if (r < 0)
                return r;
        r = bridge_file_opened(thread, node, nd_take_fd(fd), &st, ret_open);
        bridge_node_put(thread->state, node);
        if (r == 0)
                bridge_reply_entry(bridge_shared(thread), &st, id, ret_entry);
        return r;
}

void bridge_create(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        struct {
                struct fuse_entry_out entry;
                struct fuse_open_out open;
        } reply = {};
        int r;

        bridge_reply_begin(thread, request->name ? bridge_inode_of(node, request->name) : 0, 0);
        r = create(thread, request, node, &reply.entry, &reply.open);
        bridge_reply(thread, request->head, r, &reply, sizeof reply);
}
