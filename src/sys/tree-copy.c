/* SPDX-License-Identifier: Apache-2.0 */
/* tree-copy.c - see tree-copy.h
 *
 * Theory of operation
 *   Depth first, two open directories per level. A new directory is 0700 and a new file 0600 until
 *   it is complete; then owner, mode (a change of owner clears set-user-ID bits), attributes and
 *   times are set, in this order. */
#include "sys/tree-copy.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/text.h"
#include "sys/calls.h"
#include "sys/dir.h"

enum {
        PIECE = 128 << 10,
        NAMES_CEILING = 64 << 10, /* XATTR_LIST_MAX and XATTR_SIZE_MAX */
        VALUE_CEILING = 64 << 10,
};

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

static struct nd_error *copy_attributes(int from, int to, const char *name) {
        nd_autofree char *names = nullptr, *value = nullptr;
        ssize_t length = flistxattr(from, nullptr, 0);

        if (length == 0 || (length < 0 && errno == ENOTSUP))
                return nullptr;
        names = nd_malloc(NAMES_CEILING);
        value = nd_malloc(VALUE_CEILING);
        length = flistxattr(from, names, NAMES_CEILING);
        if (length < 0)
                return cannot("list the extended attributes of", name);
        for (const char *at = names; at < names + length; at += strlen(at) + 1) {
                ssize_t n = is_carried(at) ? fgetxattr(from, at, value, VALUE_CEILING) : -1;

                if (is_carried(at) && (n < 0 || nd_sys->fsetxattr(to, at, value, (size_t) n, 0) < 0))
                        return nd_error_new(nd_error_code_of(errno), errno, "attribute %s of '%s'", at, name);
        }
        return nullptr;
}

static struct nd_error *finish(int from, int to, const struct stat *st, const char *name) {
        const struct timespec times[2] = {st->st_atim, st->st_mtim};

        if (nd_sys->fchown(to, st->st_uid, st->st_gid) < 0)
                return cannot("set the owner of", name);
        if (nd_sys->fchmod(to, st->st_mode & 07777) < 0)
                return cannot("set the mode of", name);
        nd_try(copy_attributes(from, to, name));
        if (nd_sys->utimensat(to, nullptr, times, 0) < 0)
                return cannot("set the times of", name);
        return nullptr;
}

/* ---- types of entries ---- */

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

static struct nd_error *copy_file(int from_dir, int to_dir, const char *name, const struct stat *st) {
        nd_autoclose int from = enter(from_dir, name, O_RDONLY | O_NONBLOCK), to = -EBADF;

        if (from < 0)
                return cannot("open", name);
        to = nd_sys->openat(to_dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return cannot("create", name);
        nd_try(copy_bytes(from, to, st->st_size, name));
        return finish(from, to, st, name);
}

static struct nd_error *copy_link(int from_dir, int to_dir, const char *name, const struct stat *st) {
        const struct timespec times[2] = {st->st_atim, st->st_mtim};
        char target[PATH_MAX];
        ssize_t n = readlinkat(from_dir, name, target, sizeof target);

        if (n < 0 || n >= PATH_MAX)
                return cannot("read the link", name);
        target[n] = '\0';
        if (nd_sys->symlinkat(target, to_dir, name) < 0)
                return cannot("create the link", name);
        if (nd_sys->fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
                return cannot("set the owner of the link", name);
        if (nd_sys->utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
                return cannot("set the times of the link", name);
        return nullptr;
}

static struct nd_error *copy_fifo(int to_dir, const char *name, const struct stat *st) {
        if (nd_sys->mknodat(to_dir, name, S_IFIFO | 0600, 0) < 0 ||
            nd_sys->fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
            nd_sys->fchmodat(to_dir, name, st->st_mode & 07777, 0) < 0)
                return cannot("create the FIFO", name);
        return nullptr;
}

static struct nd_error *copy_entries(int from, int to, const char *path, unsigned level);

static struct nd_error *copy_directory(int from_dir, int to_dir, const char *name, const struct stat *st, unsigned level) {
        nd_autoclose int from = -EBADF, to = -EBADF;

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
        nd_try(copy_entries(from, to, name, level));
        return finish(from, to, st, name);
}

static struct nd_error *copy_entry(int from, int to, const char *name, unsigned level) {
        struct stat st;

        if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return cannot("look at", name);
        switch (st.st_mode & S_IFMT) {
        case S_IFDIR:
                return copy_directory(from, to, name, &st, level);
        case S_IFREG:
                return copy_file(from, to, name, &st);
        case S_IFLNK:
                return copy_link(from, to, name, &st);
        case S_IFIFO:
                return copy_fifo(to, name, &st);
        default:
                return nullptr;
        }
}

/* Reads through a new descriptor: the caller's offset does not move. */
static struct nd_error *copy_entries(int from, int to, const char *path, unsigned level) {
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
                        nd_try(nd_error_wrap(copy_entry(from, to, entry->d_name, level + 1), "in '%s'", path));
        return errno != 0 ? cannot("read", path) : nullptr;
}

struct nd_error *nd_tree_copy(int from, int to) {
        struct stat st;

        if (fstat(from, &st) < 0)
                return cannot("look at", ".");
        nd_try(copy_entries(from, to, ".", 0));
        return finish(from, to, &st, ".");
}
