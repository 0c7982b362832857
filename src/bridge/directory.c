/* SPDX-License-Identifier: Apache-2.0 */
/* directory.c - reads directories, with or without the attributes of the entries */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "bridge/identity.h"
#include "bridge/node.h"
#include "bridge/operations.h"
#include "bridge/reply.h"

enum {
        /* Of the thread's buffer; what the filesystem returns is behind it. */
        REPLY_MOST = 64 << 10,
        RAW_LEAST = 24, /* shortest entry of getdents64(), that of a name of 1 to 4 bytes */
};
static_assert(BRIDGE_REQUEST >= 2 * REPLY_MOST);

void bridge_opendir(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        struct fuse_open_out reply = {};
        int fd;

        bridge_identity_for(thread, request->head, node);
        fd = bridge_node_open(thread, node, O_RDONLY | O_DIRECTORY);
        if (fd < 0) {
                bridge_reply_error(thread, request->head, fd);
                return;
        }
        reply.fh = bridge_file_add(thread, node, fd);
        bridge_reply(thread, request->head, reply.fh > 0 ? 0 : -ENFILE, &reply, sizeof reply);
}

/* A list of entries in the kernel's format. */
struct list {
        unsigned char *bytes;
        size_t used, size;
        bool with_attributes;
};

static size_t entry_size(const struct list *list, size_t name_length) {
        size_t size = (list->with_attributes ? sizeof(struct fuse_entry_out) : 0) + sizeof(struct fuse_dirent) + name_length;

        return (size + 7) & ~(size_t) 7;
}

static void add_attributes(struct bridge_thread *thread, struct bridge_node *node, const char *name,
                           struct fuse_entry_out *ret) {
        struct stat st;
        uint64_t id;

        /* Node 0: the kernel looks the entry up when it is used. */
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && bridge_node_lookup(thread, node, name, &st, &id) == 0)
                bridge_reply_entry(bridge_shared(thread), &st, id, ret);
}

/* False if the entry does not fit. */
static bool add(struct bridge_thread *thread, struct bridge_node *node, const struct dirent64 *entry, struct list *list) {
        size_t length = strlen(entry->d_name), size = entry_size(list, length);
        unsigned char *at = list->bytes + list->used;
        struct fuse_dirent head = {
                .ino = entry->d_ino, .off = (uint64_t) entry->d_off, .namelen = (uint32_t) length, .type = entry->d_type};
        struct fuse_entry_out attributes = {};

        if (size > list->size - list->used || (list->with_attributes && thread->slot->grants >= BRIDGE_GRANTS))
                return false;
        memset(at, 0, size);
        if (list->with_attributes) {
                add_attributes(thread, node, entry->d_name, &attributes);
                memcpy(at, &attributes, sizeof attributes);
                at += sizeof attributes;
        }
        memcpy(at, &head, sizeof head);
        memcpy(at + sizeof head, entry->d_name, length);
        list->used += size;
        return true;
}

/* How much to read so that all of it fits into the list. What does not fit would be read again from
 * an offset that an NFS client has in no cache, and so with a request to the server. An entry takes
 * more bytes in the list than before; the shortest grow most. */
static size_t readable(const struct bridge_thread *thread, const struct list *list) {
        size_t entries = (list->size - list->used) / entry_size(list, 1), grants = BRIDGE_GRANTS - thread->slot->grants;

        if (list->with_attributes && entries > grants)
                entries = grants;
        return entries * RAW_LEAST;
}

/* Fills the list from the directory's position. Returns 0 or -errno. */
static int fill(struct bridge_thread *thread, struct bridge_node *node, int fd, struct list *list) {
        unsigned char *raw = thread->buffer + REPLY_MOST;

        for (;;) {
                size_t most = readable(thread, list);
                ssize_t length;

                /* The buffer must have room for the longest name. */
                if (most < sizeof(struct dirent64) && list->used > 0)
                        return 0;
                length = getdents64(fd, raw, most < sizeof(struct dirent64) ? sizeof(struct dirent64) : most);
                if (length < 0 && list->used == 0)
                        return -errno;
                if (length <= 0)
                        return 0;
                for (ssize_t at = 0; at < length;) {
                        const struct dirent64 *entry = (const void *) (raw + at);

                        if (!add(thread, node, entry, list))
                                return 0;
                        at += entry->d_reclen;
                }
        }
}

void bridge_readdir(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node) {
        const struct fuse_read_in *argument = request->argument;
        struct list list = {.bytes = thread->buffer,
                            .size = argument->size < REPLY_MOST ? argument->size : REPLY_MOST,
                            .with_attributes = request->head->opcode == FUSE_READDIRPLUS};
        int fd = bridge_file_fd(thread, argument->fh), r = fd < 0 ? fd : 0;

        if (r == 0) {
                bridge_identity_for(thread, request->head, node);
                r = lseek(fd, (off_t) argument->offset, SEEK_SET) < 0 ? -errno : fill(thread, node, fd, &list);
        }
        bridge_reply(thread, request->head, r, list.bytes, list.used);
}
