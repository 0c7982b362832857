/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/dir.h"

#include <dirent.h>
#include <linux/openat2.h>

#include "base/text.h"
#include "sys/calls.h"

struct nd_error *nd_dir_open(int dir_fd, const char *path, int *ret_fd) {
        int fd = nd_sys->openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open directory '%s'", path);
        *ret_fd = fd;
        return nullptr;
}

struct nd_error *nd_dir_open_beneath(int dir_fd, const char *path, int *ret_fd) {
        struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
        int fd = nd_sys->openat2(dir_fd, path, &how, sizeof how);

        if (fd < 0) {
                bool refused = errno == ELOOP || errno == ENOTDIR || errno == EXDEV;

                return nd_error_new(refused ? ND_INVALID : nd_error_code_of(errno), errno, "open directory '%s'", path);
        }
        *ret_fd = fd;
        return nullptr;
}

struct nd_error *nd_dir_give(int dir_fd, const char *path, uid_t uid, gid_t gid, mode_t mode) {
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_open(dir_fd, path, &fd));
        if (nd_sys->fchown(fd, uid, gid) < 0 || nd_sys->fchmod(fd, mode) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "change owner of '%s' to user %u", path, uid);
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
        return nd_error_new(nd_error_code_of(errno), errno, "make directory '%s'", path);
}

/* type is DT_DIR or DT_REG; "." and ".." never match. */
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
        nd_cleanup(nd_dir_close) DIR *dir = nullptr;
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

struct nd_error *nd_dir_sync(int fd, const char *path) {
        if (nd_sys->fsync(fd) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "sync directory '%s'", path);
        return nullptr;
}
