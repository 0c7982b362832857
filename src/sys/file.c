/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/file.h"

#include <dirent.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

struct nd_error *nd_dir_open(int dir_fd, const char *path, int *ret_fd) {
        int fd = nd_sys->openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

        if (fd < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "open directory '%s'", path);
        *ret_fd = fd;
        return nullptr;
}

struct nd_error *nd_dir_open_beneath(int dir_fd, const char *path, int *ret_fd) {
        struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
        int fd = nd_sys->openat2(dir_fd, path, &how, sizeof how);

        if (fd < 0) {
                bool refused = errno == ELOOP || errno == ENOTDIR || errno == EXDEV;

                return nd_error_new(refused ? ND_INVALID : nd_code_of_errno(errno), errno, "open directory '%s'", path);
        }
        *ret_fd = fd;
        return nullptr;
}

struct nd_error *nd_dir_give(int dir_fd, const char *path, uid_t uid, gid_t gid, mode_t mode) {
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_open(dir_fd, path, &fd));
        if (nd_sys->fchown(fd, uid, gid) < 0 || nd_sys->fchmod(fd, mode) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "give '%s' to user %u", path, uid);
        return nullptr;
}

struct nd_error *nd_dir_make(int dir_fd, const char *path, mode_t mode) {
        struct stat st;

        if (nd_sys->mkdirat(dir_fd, path, mode) == 0)
                return nullptr;
        if (errno == EEXIST) {
                if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                        return nullptr;
                return nd_error_new(ND_EXISTS, ENOTDIR, "make directory '%s'", path);
        }
        return nd_error_new(nd_code_of_errno(errno), errno, "make directory '%s'", path);
}

static void close_dir(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

/* type is DT_DIR or DT_REG; "." and ".." are of no type. */
static bool is_of_type(int dir_fd, const struct dirent *entry, unsigned char type) {
        struct stat st;

        if (nd_streq(entry->d_name, ".") || nd_streq(entry->d_name, ".."))
                return false;
        if (entry->d_type != DT_UNKNOWN)
                return entry->d_type == type;
        return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && IFTODT(st.st_mode) == type;
}

static struct nd_error *list(int base, const char *path, unsigned char type, size_t ceiling, struct nd_strings *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_cleanup(close_dir) DIR *dir = nullptr;
        nd_autoclose int fd = -EBADF;
        const struct dirent *entry;

        nd_try(nd_dir_open(base, path, &fd));
        dir = fdopendir(fd);
        if (!dir)
                return nd_error_new(ND_INTERNAL, errno, "read directory '%s'", path);
        (void) nd_take_fd(fd); /* closedir() closes it */

        while (errno = 0, (entry = readdir(dir))) {
                if (!is_of_type(dirfd(dir), entry, type))
                        continue;
                if (!nd_strings_add_within(&names, ceiling, entry->d_name))
                        return nd_error_new(ND_EXHAUSTED, 0, "directory '%s' has more than %zu %s", path, ceiling,
                                            type == DT_DIR ? "subdirectories" : "files");
        }
        if (errno != 0)
                return nd_error_new(ND_INTERNAL, errno, "read directory '%s'", path);
        nd_strings_sort(&names);
        *ret = nd_take(names, (struct nd_strings) {});
        return nullptr;
}

struct nd_error *nd_dir_list(int base, const char *path, size_t ceiling, struct nd_strings *ret) {
        return list(base, path, DT_DIR, ceiling, ret);
}

struct nd_error *nd_dir_list_files(int base, const char *path, size_t ceiling, struct nd_strings *ret) {
        return list(base, path, DT_REG, ceiling, ret);
}

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

/* What is read must be a regular file: opening has not blocked, reading will not either. */
static struct nd_error *read_regular(int fd, const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        nd_autotext text = {};
        struct stat st;

        if (fd < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "open '%s'", path);
        if (fstat(fd, &st) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat '%s'", path);
        if (S_ISDIR(st.st_mode))
                return nd_error_new(ND_INVALID, EISDIR, "read '%s'", path);
        if (!S_ISREG(st.st_mode))
                return nd_error_new(ND_INVALID, 0, "read '%s': not a regular file", path);
        nd_try(read_all(fd, path, ceiling, &text));
        if (!ret_length && memchr(nd_text_get(&text), '\0', text.length))
                return nd_error_new(ND_INVALID, 0, "read '%s': a null byte in text", path);
        if (ret_length)
                *ret_length = text.length;
        *ret = nd_text_steal(&text);
        return nullptr;
}

struct nd_error *nd_file_read(int dir_fd, const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        nd_autoclose int fd = nd_sys->openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

        return read_regular(fd, path, ceiling, ret, ret_length);
}

struct nd_error *nd_file_read_inside(int root_fd, const char *path, size_t ceiling, char **ret, size_t *ret_length) {
        struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        nd_autoclose int fd = nd_sys->openat2(root_fd, path, &how, sizeof how);

        return read_regular(fd, path, ceiling, ret, ret_length);
}

struct nd_error *nd_file_read_kernel(const char *path, size_t ceiling, char **ret) {
        nd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        nd_autotext text = {};

        if (fd < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "open '%s'", path);
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
                        return nd_error_new(nd_code_of_errno(errno), errno, "write '%s'", name);
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
                return nd_error_new(nd_code_of_errno(errno), errno, "make '%s'", path);
        return write_all(fd, path, bytes, length);
}

struct nd_error *nd_file_write_kernel(const char *path, const char *text) {
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0);

        if (fd < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "open '%s'", path);
        if (nd_sys->write(fd, text, strlen(text)) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "write '%s' to '%s'", text, path);
        return nullptr;
}

/* A temporary file under a name of its own; removed by its destructor unless it was renamed away. */
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
                        return nd_error_new(ND_INTERNAL, errno, "draw a temporary name beside '%s'", beside);
                (void) snprintf(t.name, sizeof t.name, "%s%016llx", ND_FILE_TEMPORARY, (unsigned long long) number);
                t.fd = nd_sys->openat(dir_fd, t.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
                if (t.fd >= 0) {
                        *ret = t;
                        return nullptr;
                }
                if (errno != EEXIST)
                        return nd_error_new(nd_code_of_errno(errno), errno, "create a temporary file beside '%s'", beside);
        }
        return nd_error_new(ND_INTERNAL, EEXIST, "create a temporary file beside '%s'", beside);
}

static struct nd_error *sync_directory(int dir_fd, const char *name) {
        if (nd_sys->fsync(dir_fd) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "sync the directory of '%s'", name);
        return nullptr;
}

static struct nd_error *replace(int dir_fd, const char *name, const void *bytes, size_t length, mode_t mode, bool sync) {
        nd_cleanup(temporary_done) struct temporary t = {.fd = -EBADF};

        nd_try(temporary_open(dir_fd, name, mode, &t));
        nd_try(write_all(t.fd, name, bytes, length));
        if (sync && nd_sys->fsync(t.fd) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "sync '%s'", name);
        if (nd_sys->renameat(dir_fd, t.name, dir_fd, name) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "rename over '%s'", name);
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
                return nd_error_new(nd_code_of_errno(errno), errno, "remove '%s'", name);
        return nullptr;
}

struct nd_error *nd_file_remove(int dir_fd, const char *name) {
        nd_try(nd_file_unlink(dir_fd, name));
        return sync_directory(dir_fd, name);
}

struct nd_error *nd_file_rename(int old_dir_fd, const char *old_name, int new_dir_fd, const char *new_name) {
        if (nd_sys->renameat(old_dir_fd, old_name, new_dir_fd, new_name) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "rename '%s' to '%s'", old_name, new_name);
        return nullptr;
}

struct nd_error *nd_dir_sync(int fd, const char *path) {
        if (nd_sys->fsync(fd) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "sync directory '%s'", path);
        return nullptr;
}
