/* SPDX-License-Identifier: Apache-2.0 */
/* tree-copy.c - see tree-copy.h
 *
 * Theory of operation
 *   Depth first, two open directories per level. A new directory is 0700 and a new file 0600 until
 *   it is complete; then owner, mode (a change of owner clears set-user-ID bits), attributes and
 *   times are set, in this order.
 *   Of a file with several links the first that is found is copied, and its path kept; the others
 *   are linked to it. No other process writes to the copy, so the path stays valid.
 *   In a user namespace the kernel shows a file's capabilities without the namespace's root, and
 *   stores them with it. A copy for a namespace below gets that namespace's root. */
#include "sys/tree-copy.h"

#include <dirent.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/map.h"
#include "base/text.h"
#include "sys/calls.h"
#include "sys/dir.h"

enum {
        PIECE = 128 << 10,
        NAMES_CEILING = 64 << 10, /* XATTR_LIST_MAX and XATTR_SIZE_MAX */
        VALUE_CEILING = 64 << 10,
        LINKS_MOST = 100000,     /* further ones are copied */
        SHIFT_ENTRIES = 1000000, /* of a tree that is shifted in place */
};

struct copy {
        const struct nd_tree_shift *shift; /* nullptr = owners stay */
        int root;                          /* of the copy */
        char *path;                        /* of the current directory, with a slash at its end */
        struct nd_map links;               /* inode -> copy of a file with several links */
};

static void copy_done(struct copy *copy) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&copy->links, &at));)
                free(slot->value);
        nd_map_done(&copy->links);
        free(copy->path);
}

static struct nd_error *cannot(const char *what, const char *name) {
        return nd_error_new(nd_error_code_of(errno), errno, "%s '%s'", what, name);
}

static int enter(int dir_fd, const char *name, int flags) {
        struct open_how how = {.flags = (uint64_t) (O_NOFOLLOW | O_CLOEXEC | flags),
                               .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};

        return nd_sys->openat2(dir_fd, name, &how, sizeof how);
}

/* ---- metadata ---- */

static bool is_carried(const char *attribute) {
        return nd_has_prefix(attribute, "user.") || nd_has_prefix(attribute, "system.posix_acl_") ||
               nd_streq(attribute, "security.capability");
}

/* An ID of a shifted namespace; ours if it does not have that one. */
static uint32_t shifted(const struct nd_tree_shift *shift, uint32_t first, uint32_t id) {
        return id < shift->count ? first + id : 0;
}

static uint32_t read32(const unsigned char *at) {
        return (uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24;
}

static void write32(unsigned char *at, uint32_t value) {
        for (unsigned i = 0; i < 4; i++)
                at[i] = (unsigned char) (value >> (8 * i));
}

/* An ACL: a version, then entries of tag, permissions and ID, all little endian. */
static void shift_acl(const struct nd_tree_shift *shift, unsigned char *value, size_t length) {
        enum { HEADER = 4, ENTRY = 8, USER = 0x02, GROUP = 0x08 };

        for (size_t at = HEADER; at + ENTRY <= length; at += ENTRY) {
                unsigned tag = value[at] | (unsigned) value[at + 1] << 8;

                if (tag == USER || tag == GROUP)
                        write32(value + at + 4, shifted(shift, tag == USER ? shift->uid : shift->gid, read32(value + at + 4)));
        }
}

/* Revision 2 of a file capability becomes revision 3, which has the root of a namespace at its end.
 * The kernel honours no other root than ours in the shifted namespace. */
static size_t shift_capability(const struct nd_tree_shift *shift, unsigned char *value, size_t length) {
        enum { LENGTH_2 = 20, LENGTH_3 = 24, REVISION = 3 }; /* of the highest byte */

        if (length != LENGTH_2)
                return length;
        value[3] = REVISION;
        write32(value + LENGTH_2, shift->uid);
        return LENGTH_3;
}

size_t nd_tree_shift_attribute(const struct nd_tree_shift *shift, const char *name, unsigned char *value, size_t length) {
        if (nd_streq(name, "security.capability"))
                return shift_capability(shift, value, length);
        if (nd_has_prefix(name, "system.posix_acl_"))
                shift_acl(shift, value, length);
        return length;
}

static struct nd_error *copy_attribute(const struct copy *copy, int from, int to, const char *attribute,
                                       unsigned char *value) {
        ssize_t n = fgetxattr(from, attribute, value, VALUE_CEILING);
        size_t length = n > 0 ? (size_t) n : 0;

        if (n > 0 && copy->shift)
                length = nd_tree_shift_attribute(copy->shift, attribute, value, length);
        if (n < 0 || nd_sys->fsetxattr(to, attribute, value, length, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "attribute %s", attribute);
        return nullptr;
}

static struct nd_error *copy_attributes(const struct copy *copy, int from, int to, const char *name) {
        nd_autofree char *names = nullptr;
        nd_autofree unsigned char *value = nullptr;
        ssize_t length = flistxattr(from, nullptr, 0);

        if (length == 0 || (length < 0 && errno == ENOTSUP))
                return nullptr;
        names = nd_malloc(NAMES_CEILING);
        value = nd_malloc(VALUE_CEILING + ND_SHIFT_GROWTH);
        length = flistxattr(from, names, NAMES_CEILING);
        if (length < 0)
                return cannot("list the extended attributes of", name);
        for (const char *at = names; at < names + length; at += strlen(at) + 1)
                if (is_carried(at))
                        nd_try(nd_error_wrap(copy_attribute(copy, from, to, at, value), "of '%s'", name));
        return nullptr;
}

/* Owner and mode of the copy. */
static struct stat metadata_of(const struct copy *copy, const struct stat *st) {
        const struct nd_tree_shift *shift = copy->shift;
        struct stat result = *st;

        if (!shift)
                return result;
        if (st->st_uid >= shift->count || st->st_gid >= shift->count)
                result.st_mode &= ~(mode_t) (S_ISUID | S_ISGID);
        result.st_uid = shifted(shift, shift->uid, st->st_uid);
        result.st_gid = shifted(shift, shift->gid, st->st_gid);
        return result;
}

static struct nd_error *finish(const struct copy *copy, int from, int to, const struct stat *st, const char *name) {
        const struct timespec times[2] = {st->st_atim, st->st_mtim};
        const struct stat wanted = metadata_of(copy, st);

        if (nd_sys->fchown(to, wanted.st_uid, wanted.st_gid) < 0)
                return cannot("set the owner of", name);
        if (nd_sys->fchmod(to, wanted.st_mode & 07777) < 0)
                return cannot("set the mode of", name);
        nd_try(copy_attributes(copy, from, to, name));
        if (nd_sys->utimensat(to, nullptr, times, 0) < 0)
                return cannot("set the times of", name);
        return nullptr;
}

/* ---- contents ---- */

static struct nd_error *copy_piece(int from, int to, off_t start, off_t end, const char *name) {
        nd_autofree char *piece = nd_malloc(PIECE);

        for (; start < end;) {
                size_t wanted = end - start < PIECE ? (size_t) (end - start) : PIECE;
                ssize_t n = pread(from, piece, wanted, start);

                if (n < 0)
                        return cannot("read", name);
                if (n == 0)
                        break;
                n = nd_sys->pwrite(to, piece, (size_t) n, start);
                if (n < 0)
                        return cannot("write", name);
                start += n;
        }
        return nullptr;
}

static struct nd_error *copy_bytes(int from, int to, off_t size, const char *name) {
        off_t data = 0, hole;

        if (nd_sys->ftruncate(to, size) < 0)
                return cannot("set the size of", name);
        while (data < size && (data = lseek(from, data, SEEK_DATA)) >= 0) {
                hole = lseek(from, data, SEEK_HOLE);
                if (hole < 0)
                        return cannot("look for holes in", name);
                nd_try(copy_piece(from, to, data, hole < size ? hole : size, name));
                data = hole;
        }
        /* ENXIO: only a hole follows. */
        return data < 0 && errno != ENXIO ? cannot("look for data in", name) : nullptr;
}

/* ---- hard links ---- */

enum { INODE_TEXT = 24 };

static const char *inode_text(const struct stat *st, char ret[static INODE_TEXT]) {
        (void) snprintf(ret, INODE_TEXT, "%ju", (uintmax_t) st->st_ino);
        return ret;
}

static void keep_link(struct copy *copy, const struct stat *st, const char *name) {
        char inode[INODE_TEXT];

        if (copy->links.count < LINKS_MOST && !nd_map_has(&copy->links, inode_text(st, inode)))
                (void) nd_map_put(&copy->links, inode, nd_format("%s%s", copy->path, name));
}

/* Whether the file was linked to a copy of it. A path that is too long is one reason why not. */
static bool link_file(const struct copy *copy, int to_dir, const char *name, const struct stat *st) {
        char inode[INODE_TEXT];
        const char *path = copy->shift && st->st_nlink > 1 ? nd_map_get(&copy->links, inode_text(st, inode)) : nullptr;

        return path && nd_sys->linkat(copy->root, path, to_dir, name, 0) == 0;
}

/* ---- types of entries ---- */

static struct nd_error *copy_file(struct copy *copy, int from_dir, int to_dir, const char *name, const struct stat *st) {
        nd_autoclose int from = -EBADF, to = -EBADF;

        if (link_file(copy, to_dir, name, st))
                return nullptr;
        from = enter(from_dir, name, O_RDONLY | O_NONBLOCK);
        if (from < 0)
                return cannot("open", name);
        to = nd_sys->openat(to_dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return cannot("create", name);
        /* filesystems that share blocks need no copy of the data */
        if (!copy->shift || ioctl(to, FICLONE, from) < 0)
                nd_try(copy_bytes(from, to, st->st_size, name));
        if (copy->shift && st->st_nlink > 1)
                keep_link(copy, st, name);
        return finish(copy, from, to, st, name);
}

static struct nd_error *copy_link(const struct copy *copy, int from_dir, int to_dir, const char *name, const struct stat *st) {
        const struct timespec times[2] = {st->st_atim, st->st_mtim};
        const struct stat wanted = metadata_of(copy, st);
        char target[PATH_MAX];
        ssize_t n = readlinkat(from_dir, name, target, sizeof target);

        if (n < 0 || n >= PATH_MAX)
                return cannot("read the link", name);
        target[n] = '\0';
        if (nd_sys->symlinkat(target, to_dir, name) < 0)
                return cannot("create the link", name);
        if (nd_sys->fchownat(to_dir, name, wanted.st_uid, wanted.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
                return cannot("set the owner of the link", name);
        if (nd_sys->utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
                return cannot("set the times of the link", name);
        return nullptr;
}

static struct nd_error *copy_fifo(const struct copy *copy, int to_dir, const char *name, const struct stat *st) {
        const struct stat wanted = metadata_of(copy, st);

        if (nd_sys->mknodat(to_dir, name, S_IFIFO | 0600, 0) < 0 ||
            nd_sys->fchownat(to_dir, name, wanted.st_uid, wanted.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
            nd_sys->fchmodat(to_dir, name, wanted.st_mode & 07777, 0) < 0)
                return cannot("create the FIFO", name);
        return nullptr;
}

/* Device 0:0, which overlays take for a removed file. Every user namespace may create it. */
static struct nd_error *copy_whiteout(const struct copy *copy, int to_dir, const char *name, const struct stat *st) {
        if (!copy->shift || st->st_rdev != makedev(0, 0))
                return nullptr;
        return nd_sys->mknodat(to_dir, name, S_IFCHR, makedev(0, 0)) == 0 ? nullptr : cannot("create the whiteout", name);
}

static struct nd_error *copy_entries(struct copy *copy, int from, int to, const char *path, unsigned level);

static struct nd_error *copy_directory(struct copy *copy, int from_dir, int to_dir, const char *name, const struct stat *st,
                                       unsigned level) {
        nd_autoclose int from = -EBADF, to = -EBADF;
        nd_autofree char *parent = nullptr;

        if (level >= ND_COPY_DEPTH)
                return nd_error_new(ND_EXHAUSTED, ENAMETOOLONG, "'%s' is nested deeper than %d directories", name,
                                    ND_COPY_DEPTH);
        from = enter(from_dir, name, O_RDONLY | O_DIRECTORY);
        if (from < 0)
                return cannot("open", name);
        if (nd_sys->mkdirat(to_dir, name, 0700) < 0)
                return cannot("make directory", name);
        to = enter(to_dir, name, O_RDONLY | O_DIRECTORY);
        if (to < 0)
                return cannot("open", name);
        parent = nd_take_ptr(copy->path);
        copy->path = nd_format("%s%s/", parent, name);
        nd_try(copy_entries(copy, from, to, name, level));
        free(copy->path);
        copy->path = nd_take_ptr(parent);
        return finish(copy, from, to, st, name);
}

static struct nd_error *copy_entry(struct copy *copy, int from, int to, const char *name, unsigned level) {
        struct stat st;

        if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return cannot("look at", name);
        switch (st.st_mode & S_IFMT) {
        case S_IFDIR:
                return copy_directory(copy, from, to, name, &st, level);
        case S_IFREG:
                return copy_file(copy, from, to, name, &st);
        case S_IFLNK:
                return copy_link(copy, from, to, name, &st);
        case S_IFIFO:
                return copy_fifo(copy, to, name, &st);
        case S_IFCHR:
                return copy_whiteout(copy, to, name, &st);
        default:
                return nullptr;
        }
}

/* A function for one entry of a directory. */
typedef struct nd_error *(*entry_function)(const char *name, void *userdata);

/* Reads through a new descriptor: the caller's offset does not move. */
static struct nd_error *each_entry(int from, const char *path, entry_function call, void *userdata) {
        int fd = enter(from, ".", O_RDONLY | O_DIRECTORY);
        nd_cleanup(nd_dir_close) DIR *directory = fd < 0 ? nullptr : fdopendir(fd);
        const struct dirent *entry;

        if (!directory) {
                struct nd_error *error = cannot("read", path);

                nd_close_fd(&fd);
                return error;
        }
        while (errno = 0, (entry = readdir(directory)))
                if (!nd_streq(entry->d_name, ".") && !nd_streq(entry->d_name, ".."))
                        nd_try(nd_error_wrap(call(entry->d_name, userdata), "in '%s'", path));
        return errno != 0 ? cannot("read", path) : nullptr;
}

struct copied_directory {
        struct copy *copy;
        int from, to;
        unsigned level;
};

static struct nd_error *copy_named(const char *name, void *userdata) {
        const struct copied_directory *d = userdata;

        return copy_entry(d->copy, d->from, d->to, name, d->level + 1);
}

static struct nd_error *copy_entries(struct copy *copy, int from, int to, const char *path, unsigned level) {
        return each_entry(from, path, copy_named,
                          &(struct copied_directory) {.copy = copy, .from = from, .to = to, .level = level});
}

struct nd_error *nd_tree_copy_shifted(int from, int to, const struct nd_tree_shift *shift) {
        nd_cleanup(copy_done) struct copy copy = {.shift = shift, .root = to, .path = nd_strdup("")};
        struct stat st;

        if (fstat(from, &st) < 0)
                return cannot("look at", ".");
        nd_try(copy_entries(&copy, from, to, ".", 0));
        return finish(&copy, from, to, &st, ".");
}

struct nd_error *nd_tree_copy(int from, int to) {
        return nd_tree_copy_shifted(from, to, nullptr);
}

/* ---- owners, in place ---- */

struct shifting {
        const struct nd_tree_shift *shift;
        int directory;
        unsigned level;
        unsigned *left; /* entries */
};

/* IDs that are not of the namespace, because they are shifted or of another one, stay. */
static uint32_t shifted_once(const struct nd_tree_shift *shift, uint32_t first, uint32_t id) {
        return id < shift->count ? first + id : id;
}

static struct nd_error *shift_owner(int fd, const struct nd_tree_shift *shift, const struct stat *st) {
        uint32_t uid = shifted_once(shift, shift->uid, st->st_uid), gid = shifted_once(shift, shift->gid, st->st_gid);

        if (uid == st->st_uid && gid == st->st_gid)
                return nullptr;
        if (nd_sys->fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set the owner of a file in the volume");
        return nullptr;
}

static struct nd_error *shift_entry(const char *name, void *userdata);

static struct nd_error *shift_tree(int fd, const char *name, const struct nd_tree_shift *shift, unsigned level,
                                   unsigned *left) {
        nd_autoclose int directory = -EBADF;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return cannot("look at", name);
        if ((*left)-- == 0 || level >= ND_COPY_DEPTH)
                return nd_error_new(ND_EXHAUSTED, 0, "the volume has more than %d files or %d nested directories",
                                    SHIFT_ENTRIES, ND_COPY_DEPTH);
        if (S_ISDIR(st.st_mode)) {
                directory = enter(fd, ".", O_RDONLY | O_DIRECTORY);
                if (directory < 0)
                        return cannot("open", name);
                nd_try(each_entry(directory, name, shift_entry,
                                  &(struct shifting) {.shift = shift, .directory = directory, .level = level, .left = left}));
        }
        return shift_owner(fd, shift, &st);
}

/* A file may disappear, or be replaced by a mount or a link, while we look at it. */
static struct nd_error *shift_entry(const char *name, void *userdata) {
        const struct shifting *s = userdata;
        struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV | RESOLVE_BENEATH};
        nd_autoclose int fd = nd_sys->openat2(s->directory, name, &how, sizeof how);

        if (fd < 0)
                return errno == ENOENT || errno == EXDEV ? nullptr : cannot("open", name);
        return shift_tree(fd, name, s->shift, s->level + 1, s->left);
}

struct nd_error *nd_tree_shift(int root, const struct nd_tree_shift *shift) {
        unsigned left = SHIFT_ENTRIES;

        return shift_tree(root, ".", shift, 0, &left);
}
