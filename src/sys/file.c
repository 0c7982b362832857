/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/file.h"

#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static struct nd_error *read_all(int fd, const char *path, size_t ceiling, struct nd_text *text) {
        char piece[4096];

        *text = ND_TEXT(ceiling);
        for (;;) {
                ssize_t n = read(fd, piece, sizeof piece);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return nd_error_new(ND_INTERNAL, errno, "read '%s'", path);
                if (n == 0)
                        return nullptr;
                nd_text_append(text, piece, (size_t) n);
                if (text->overflow)
                        return nd_error_new(ND_EXHAUSTED, EFBIG, "read '%s': more than %zu bytes", path, ceiling);
        }
}

/* Only regular files are read: neither open nor read can block then. */
static struct nd_error *read_regular(int fd, const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        nd_autotext struct nd_text text = {};
        struct stat st;

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        if (fstat(fd, &st) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat '%s'", path);
        if (S_ISDIR(st.st_mode))
                return nd_error_new(ND_INVALID, EISDIR, "read '%s'", path);
        if (!S_ISREG(st.st_mode))
                return nd_error_new(ND_INVALID, 0, "read '%s': not a regular file", path);
        nd_try(read_all(fd, path, ceiling, &text));
        if (!ret_length && memchr(nd_text_get(&text), '\0', text.length))
                return nd_error_new(ND_INVALID, 0, "read '%s': text contains a null byte", path);
        if (ret_length)
                *ret_length = text.length;
        *ret = nd_text_steal(&text);
        return nullptr;
}

struct nd_error *nd_file_read(int dir_fd, const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        nd_autoclose int fd = nd_sys->openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

        return read_regular(fd, path, ceiling, ret, ret_length);
}

struct nd_error *nd_file_read_linked(int dir_fd, const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        nd_autoclose int fd = nd_sys->openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

        return read_regular(fd, path, ceiling, ret, ret_length);
}

struct nd_error *nd_file_read_any(const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
        nd_autotext struct nd_text text = {};

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        nd_try(read_all(fd, path, ceiling, &text));
        *ret_length = text.length;
        *ret = nd_text_steal(&text);
        return nullptr;
}

struct nd_error *nd_file_read_inside(int root_fd, const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        nd_autoclose int fd = nd_sys->openat2(root_fd, path, &how, sizeof how);

        return read_regular(fd, path, ceiling, ret, ret_length);
}

struct nd_error *nd_file_read_kernel(const char *path, size_t ceiling, char **ret) {
        nd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        nd_autotext struct nd_text text = {};

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        nd_try(read_all(fd, path, ceiling, &text));
        *ret = nd_text_steal(&text);
        return nullptr;
}

static struct nd_error *write_all(int fd, const char *name, const char *bytes, size_t length) {
        while (length > 0) {
                ssize_t n = nd_sys->write(fd, bytes, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "write '%s'", name);
                if (n == 0)
                        return nd_error_new(ND_INTERNAL, EIO, "write '%s'", name);
                bytes += n;
                length -= (size_t) n;
        }
        return nullptr;
}

struct nd_error *nd_file_write(int dir_fd, const char *path, const void *bytes, size_t length, mode_t mode) {
        nd_autoclose int fd = nd_sys->openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create '%s'", path);
        return write_all(fd, path, bytes, length);
}

struct nd_error *nd_file_give(int dir_fd, const char *path, uid_t uid, gid_t gid, mode_t mode) {
        nd_autoclose int fd = nd_sys->openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        if (nd_sys->fchown(fd, uid, gid) < 0 || nd_sys->fchmod(fd, mode) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "change owner of '%s' to group %u", path, gid);
        return nullptr;
}

struct nd_error *nd_file_write_kernel(const char *path, const char *text) {
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        if (nd_sys->write(fd, text, strlen(text)) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "write '%s' to '%s'", text, path);
        return nullptr;
}

/* A temporary file; its destructor removes it unless it was renamed. */
struct temporary {
        int dir_fd;
        int fd;
        char name[sizeof ND_FILE_TEMPORARY + 16];
};

static void temporary_done(struct temporary *t) {
        nd_close_fd(&t->fd);
        if (t->name[0]) {
                int saved = errno;

                (void) nd_sys->unlinkat(t->dir_fd, t->name, 0);
                errno = saved;
        }
}

static struct nd_error *temporary_open(int dir_fd, const char *beside, mode_t mode, struct temporary *ret) {
        enum { TRIES = 100 };

        for (int i = 0; i < TRIES; i++) {
                struct temporary t = {.dir_fd = dir_fd};
                uint64_t number;

                if (getrandom(&number, sizeof number, 0) != sizeof number)
                        return nd_error_new(ND_INTERNAL, errno, "generate a temporary name beside '%s'", beside);
                (void) snprintf(t.name, sizeof t.name, "%s%016llx", ND_FILE_TEMPORARY, (unsigned long long) number);
                t.fd = nd_sys->openat(dir_fd, t.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
                if (t.fd >= 0) {
                        *ret = t;
                        return nullptr;
                }
                if (errno != EEXIST)
                        return nd_error_new(nd_error_code_of(errno), errno, "create a temporary file beside '%s'", beside);
        }
        return nd_error_new(ND_INTERNAL, EEXIST, "create a temporary file beside '%s'", beside);
}

static struct nd_error *sync_directory(int dir_fd, const char *name) {
        if (nd_sys->fsync(dir_fd) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "sync the directory of '%s'", name);
        return nullptr;
}

static struct nd_error *replace(int dir_fd, const char *name, const void *bytes, size_t length, mode_t mode, bool sync) {
        nd_cleanup(temporary_done) struct temporary t = {.fd = -EBADF};

        nd_try(temporary_open(dir_fd, name, mode, &t));
        nd_try(write_all(t.fd, name, bytes, length));
        if (sync && nd_sys->fsync(t.fd) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "sync '%s'", name);
        if (nd_sys->renameat(dir_fd, t.name, dir_fd, name) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "rename over '%s'", name);
        t.name[0] = '\0'; /* it is the file now */
        return nullptr;
}

struct nd_error *nd_file_replace(int dir_fd, const char *name, const void *bytes, size_t length, mode_t mode) {
        nd_try(replace(dir_fd, name, bytes, length, mode, true));
        return sync_directory(dir_fd, name);
}

struct nd_error *nd_file_replace_unsynced(int dir_fd, const char *name, const void *bytes, size_t length, mode_t mode) {
        return replace(dir_fd, name, bytes, length, mode, false);
}

struct nd_error *nd_file_unlink(int dir_fd, const char *name) {
        if (nd_sys->unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", name);
        return nullptr;
}

struct nd_error *nd_file_remove(int dir_fd, const char *name) {
        nd_try(nd_file_unlink(dir_fd, name));
        return sync_directory(dir_fd, name);
}

struct nd_error *nd_file_rename(int old_dir_fd, const char *old_name, int new_dir_fd, const char *new_name) {
        if (nd_sys->renameat(old_dir_fd, old_name, new_dir_fd, new_name) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "rename '%s' to '%s'", old_name, new_name);
        return nullptr;
}

static struct nd_error *open_null_at(const char *path, int flags, int *ret_fd) {
        int fd = open(path, flags | O_CLOEXEC | O_NOCTTY);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '/dev/null'");
        *ret_fd = fd;
        return nullptr;
}

static struct nd_error *open_null_read_only(int flags, int *ret_fd) {
        nd_autoclose int tree = nd_sys->open_tree(AT_FDCWD, "/dev/null", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
        char path[32];

        if (tree < 0 || nd_sys->mount_setattr(tree, "", AT_EMPTY_PATH, &read_only, sizeof read_only) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "mount '/dev/null' read-only");
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", tree);
        return open_null_at(path, flags, ret_fd);
}

struct nd_error *nd_file_open_null(int flags, int *ret_fd) {
        nd_autoerror struct nd_error *error = open_null_read_only(flags, ret_fd);

        if (nd_error_errno(error) == EPERM)
                return open_null_at("/dev/null", flags, ret_fd);
        return nd_take_ptr(error);
}
