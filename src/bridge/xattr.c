/* SPDX-License-Identifier: Apache-2.0 */
/* xattr.c - extended attributes
 *
 * The kernel lets root of the superblock's user namespace set every attribute in `security.`, and
 * leaves `system.` to the filesystem. The server has the host's privileges, so it passes on only
 * names for which the pod's kernel has checked more; others do not exist on a bridged volume. */
#include <limits.h>
#include <string.h>
#include <sys/xattr.h>

#include "bridge/identity.h"
#include "bridge/operations.h"
#include "bridge/reply.h"

static bool is_allowed(const struct bridge_thread *thread, const char *name) {
        if (strncmp(name, "system.posix_acl_", strlen("system.posix_acl_")) == 0)
                return bridge_shared(thread)->facts.acl;
        return strncmp(name, "user.", strlen("user.")) == 0 || strcmp(name, "security.capability") == 0;
}

/* Removes the names from a list that are not allowed; returns its new length. */
static size_t filter(const struct bridge_thread *thread, char *list, size_t length) {
        size_t kept = 0;

        for (size_t at = 0; at < length;) {
                size_t size = strnlen(list + at, length - at) + 1;

                if (at + size > length)
                        break;
                if (is_allowed(thread, list + at)) {
                        memmove(list + kept, list + at, size);
                        kept += size;
                }
                at += size;
        }
        return kept;
}

static bool has(const char *path, const char *name) {
        return getxattr(path, name, nullptr, 0) >= 0;
}

/* Whether the request is done again, and an earlier server found that the attribute existed or that
 * it did not. */
static bool was_recorded(const struct bridge_thread *thread, bool existed) {
        return thread->again && thread->slot->first_inode == existed;
}

/* A repeated request with XATTR_CREATE finds what the first one did. */
static bool has_value(const struct bridge_thread *thread, const char *path, const struct bridge_request *request) {
        ssize_t length = getxattr(path, request->name, thread->buffer, XATTR_SIZE_MAX);

        return length == (ssize_t) request->data_length && memcmp(thread->buffer, request->data, request->data_length) == 0;
}

static int change(struct bridge_thread *thread, const char *path, const struct bridge_request *request) {
        const struct fuse_setxattr_in *argument = request->argument;
        bool removes = request->head->opcode == FUSE_REMOVEXATTR;
        int r;

        /* Recorded: whether the attribute existed, where the result depends on it. */
        bridge_reply_begin(thread, (removes || argument->flags & XATTR_CREATE) && has(path, request->name), 0);
        if (removes) {
                r = removexattr(path, request->name) < 0 ? -errno : 0;
                return r == -ENODATA && was_recorded(thread, true) ? 0 : r;
        }
        r = setxattr(path, request->name, request->data, request->data_length, (int) argument->flags) < 0 ? -errno : 0;
        return r == -EEXIST && was_recorded(thread, false) && has_value(thread, path, request) ? 0 : r;
}

static ssize_t read_all(const struct bridge_thread *thread, const char *path, const struct bridge_request *request) {
        char *bytes = (char *) thread->buffer;
        ssize_t length;

        if (request->head->opcode == FUSE_GETXATTR)
                length = getxattr(path, request->name, bytes, XATTR_SIZE_MAX);
        else
                length = listxattr(path, bytes, XATTR_LIST_MAX);
        if (length < 0)
                return -errno;
        return request->head->opcode == FUSE_GETXATTR ? length : (ssize_t) filter(thread, bytes, (size_t) length);
}
static_assert(BRIDGE_REQUEST >= XATTR_SIZE_MAX && XATTR_SIZE_MAX == XATTR_LIST_MAX);

void bridge_xattr(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        const struct fuse_getxattr_in *argument = request->argument;
        struct bridge_fd_name path = bridge_fd_name(node->fd);
        struct fuse_getxattr_out size = {};
        ssize_t length;

        if (request->name && !is_allowed(thread, request->name)) {
                bridge_reply_error(thread, request->head, -EOPNOTSUPP);
                return;
        }
        bridge_identity_for(thread, request->head, node);
        if (request->head->opcode == FUSE_SETXATTR || request->head->opcode == FUSE_REMOVEXATTR) {
                bridge_reply_error(thread, request->head, change(thread, path.text, request));
                return;
        }
        length = read_all(thread, path.text, request);
        if (length >= 0 && argument->size > 0 && (size_t) length > argument->size)
                length = -ERANGE;
        if (length >= 0 && argument->size == 0) {
                size.size = (uint32_t) length;
                bridge_reply(thread, request->head, 0, &size, sizeof size);
                return;
        }
        bridge_reply(thread, request->head, length < 0 ? (int) length : 0, thread->buffer, length < 0 ? 0 : (size_t) length);
}
