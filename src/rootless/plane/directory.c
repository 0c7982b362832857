/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/directory.h"

#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "rootless/core/node.h"
#include "sys/file.h"

struct nd_error *rootless_plane_open(const char *path, bool make, int *ret_fd) {
        return rootless_node_open_own(AT_FDCWD, path, make, ret_fd);
}

struct nd_error *rootless_plane_read(int fd, const char *name, char **ret) {
        struct nd_error *error;
        struct stat st;

        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? nullptr : nd_error_new(nd_error_code_of(errno), errno, "stat '%s'", name);
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
                return nd_error_new(ND_DENIED, 0, "'%s' must be a file of user %u and not accessible to others (chmod 0600)",
                                    name, geteuid());
        error = nd_file_read(fd, name, PLANE_FILE_BYTES, ret, nullptr);
        return nd_error_wrap(error, "read '%s'", name);
}

struct nd_error *rootless_plane_write(int fd, const char *name, const char *text) {
        char *before = nullptr;
        bool same;

        nd_try(rootless_plane_read(fd, name, &before));
        same = before && nd_streq(before, text);
        rootless_plane_wipe(before);
        return same ? nullptr : nd_file_replace(fd, name, text, strlen(text), 0600);
}

void rootless_plane_wipe(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}
