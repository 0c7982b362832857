/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-request.c - see fuse-request.h */
#include "bridge/fuse-request.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/memory.h"

enum kind {
        UNKNOWN, /* the table's default */
        FIXED,   /* the structure alone */
        NAME,    /* and a name */
        NAMES,   /* and two of them */
        LINK,    /* a name, and the target of a symbolic link */
        DATA,    /* and bytes, as many as the structure says */
        XATTR,   /* the name of an extended attribute */
        VALUE,   /* that name and its value */
};

static const struct {
        enum kind kind;
        size_t size; /* of the structure */
} formats[] = {
        [FUSE_LOOKUP] = {NAME, 0},
        [FUSE_FORGET] = {FIXED, sizeof(struct fuse_forget_in)},
        [FUSE_GETATTR] = {FIXED, sizeof(struct fuse_getattr_in)},
        [FUSE_SETATTR] = {FIXED, sizeof(struct fuse_setattr_in)},
        [FUSE_READLINK] = {FIXED, 0},
        [FUSE_SYMLINK] = {LINK, 0},
        [FUSE_MKNOD] = {NAME, sizeof(struct fuse_mknod_in)},
        [FUSE_MKDIR] = {NAME, sizeof(struct fuse_mkdir_in)},
        [FUSE_UNLINK] = {NAME, 0},
        [FUSE_RMDIR] = {NAME, 0},
        [FUSE_RENAME] = {NAMES, sizeof(struct fuse_rename_in)},
        [FUSE_LINK] = {NAME, sizeof(struct fuse_link_in)},
        [FUSE_OPEN] = {FIXED, sizeof(struct fuse_open_in)},
        [FUSE_READ] = {FIXED, sizeof(struct fuse_read_in)},
        [FUSE_WRITE] = {DATA, sizeof(struct fuse_write_in)},
        [FUSE_STATFS] = {FIXED, 0},
        [FUSE_RELEASE] = {FIXED, sizeof(struct fuse_release_in)},
        [FUSE_FSYNC] = {FIXED, sizeof(struct fuse_fsync_in)},
        [FUSE_SETXATTR] = {VALUE, sizeof(struct fuse_setxattr_in)},
        [FUSE_GETXATTR] = {XATTR, sizeof(struct fuse_getxattr_in)},
        [FUSE_LISTXATTR] = {FIXED, sizeof(struct fuse_getxattr_in)},
        [FUSE_REMOVEXATTR] = {XATTR, 0},
        [FUSE_FLUSH] = {FIXED, sizeof(struct fuse_flush_in)},
        [FUSE_INIT] = {FIXED, offsetof(struct fuse_init_in, flags2)},
        [FUSE_OPENDIR] = {FIXED, sizeof(struct fuse_open_in)},
        [FUSE_READDIR] = {FIXED, sizeof(struct fuse_read_in)},
        [FUSE_RELEASEDIR] = {FIXED, sizeof(struct fuse_release_in)},
        [FUSE_FSYNCDIR] = {FIXED, sizeof(struct fuse_fsync_in)},
        [FUSE_GETLK] = {FIXED, sizeof(struct fuse_lk_in)},
        [FUSE_SETLK] = {FIXED, sizeof(struct fuse_lk_in)},
        [FUSE_SETLKW] = {FIXED, sizeof(struct fuse_lk_in)},
        [FUSE_CREATE] = {NAME, sizeof(struct fuse_create_in)},
        [FUSE_INTERRUPT] = {FIXED, sizeof(struct fuse_interrupt_in)},
        [FUSE_DESTROY] = {FIXED, 0},
        [FUSE_BATCH_FORGET] = {DATA, sizeof(struct fuse_batch_forget_in)},
        [FUSE_FALLOCATE] = {FIXED, sizeof(struct fuse_fallocate_in)},
        [FUSE_READDIRPLUS] = {FIXED, sizeof(struct fuse_read_in)},
        [FUSE_RENAME2] = {NAMES, sizeof(struct fuse_rename2_in)},
        [FUSE_LSEEK] = {FIXED, sizeof(struct fuse_lseek_in)},
        [FUSE_COPY_FILE_RANGE] = {FIXED, sizeof(struct fuse_copy_file_range_in)},
        [FUSE_SYNCFS] = {FIXED, 0},
        [FUSE_TMPFILE] = {FIXED, sizeof(struct fuse_create_in)}, /* its name is "/" */
};

/* Takes a terminated string from the bytes; nullptr if there is none. */
static const char *take_text(const char **at, const char *end) {
        const char *text = *at, *zero = memchr(text, '\0', (size_t) (end - text));

        if (!zero)
                return nullptr;
        *at = zero + 1;
        return text;
}

/* The kernel never sends other names; with one the operation would leave its directory. */
static int check_name(const char *name) {
        if (!name)
                return -EIO;
        if (strlen(name) > NAME_MAX)
                return -ENAMETOOLONG;
        return *name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/') ? -EINVAL : 0;
}

static int take_name(const char **at, const char *end, const char **ret) {
        *ret = take_text(at, end);
        return check_name(*ret);
}

/* The extensions at the end of a request: a list of typed blocks, of which only groups are used. */
static void take_extensions(const char *at, const char *end, struct bridge_request *request) {
        while ((size_t) (end - at) >= sizeof(struct fuse_ext_header)) {
                struct fuse_ext_header head;
                struct {
                        uint32_t count, first;
                } groups;

                memcpy(&head, at, sizeof head); /* what follows a name is not aligned */
                if (head.size < sizeof head || head.size > (size_t) (end - at))
                        return;
                if (head.type == FUSE_EXT_GROUPS && head.size >= sizeof head + sizeof groups) {
                        memcpy(&groups, at + sizeof head, sizeof groups);
                        if (groups.count > 0)
                                request->group = groups.first;
                }
                at += head.size;
        }
}

static int take_data(const char *at, const char *end, uint64_t length, struct bridge_request *request) {
        if (length > (size_t) (end - at))
                return -EIO;
        request->data = at;
        request->data_length = (size_t) length;
        return 0;
}

static int take_rest(enum kind kind, const char *at, const char *end, struct bridge_request *request) {
        const struct fuse_setxattr_in *value = request->argument;
        int r;

        switch (kind) {
        case UNKNOWN:
        case FIXED:
                return 0;
        case NAME:
                return take_name(&at, end, &request->name);
        case NAMES:
                r = take_name(&at, end, &request->name);
                return r < 0 ? r : take_name(&at, end, &request->second);
        case LINK:
                r = take_name(&at, end, &request->name);
                if (r < 0)
                        return r;
                request->second = take_text(&at, end);
                return request->second ? 0 : -EIO;
        case DATA:
                return take_data(at, end,
                                 request->head->opcode == FUSE_WRITE
                                         ? ((const struct fuse_write_in *) request->argument)->size
                                         : ((const struct fuse_batch_forget_in *) request->argument)->count *
                                                   (uint64_t) sizeof(struct fuse_forget_one),
                                 request);
        case XATTR:
        case VALUE:
                request->name = take_text(&at, end);
                if (!request->name)
                        return -EIO;
                return kind == VALUE ? take_data(at, end, value->size, request) : 0;
        }
        return -EIO;
}

int bridge_request_decode(const void *bytes, size_t length, bool long_setxattr, struct bridge_request *ret) {
        const struct fuse_in_header *head = bytes;
        const char *at = bytes, *end;
        size_t extensions, size;

        *ret = (struct bridge_request) {.group = UINT32_MAX};
        if (length < sizeof *head)
                return -EIO;
        ret->head = head;
        extensions = (size_t) head->total_extlen * 8;
        if (head->len != length || extensions > length - sizeof *head)
                return -EIO;
        if (head->opcode >= nd_count_of(formats) || formats[head->opcode].kind == UNKNOWN)
                return -ENOSYS;
        end = at + length - extensions;
        take_extensions(end, at + length, ret);
        at += sizeof *head;
        size = head->opcode == FUSE_SETXATTR && !long_setxattr ? FUSE_COMPAT_SETXATTR_IN_SIZE : formats[head->opcode].size;
        if ((size_t) (end - at) < size)
                return -EIO;
        ret->argument = at;
        return take_rest(formats[head->opcode].kind, at + size, end, ret);
}
