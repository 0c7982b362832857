/* SPDX-License-Identifier: Apache-2.0 */
/* dir.h - directories under a directory descriptor, never through a symbolic link */
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

/* Opens a directory; the last component may not be a symbolic link. dir_fd may be AT_FDCWD. */
[[nodiscard]] struct nd_error *nd_dir_open(int dir_fd, const char *path, int *ret_fd);

/* As above in an untrusted tree: no component may be a symbolic link, and none may leave dir_fd's
 * directory or cross a mount. A violation is ND_INVALID. */
[[nodiscard]] struct nd_error *nd_dir_open_beneath(int dir_fd, const char *path, int *ret_fd);

/* Creates a directory; an existing one is fine. The entry is not synced. */
[[nodiscard]] struct nd_error *nd_dir_make(int dir_fd, const char *path, mode_t mode);

/* Sets owner and mode of a directory. */
[[nodiscard]] struct nd_error *nd_dir_give(int dir_fd, const char *path, uid_t uid, gid_t gid, mode_t mode);

/* The names of the subdirectories, sorted bytewise. At most ceiling of them. */
[[nodiscard]] struct nd_error *nd_dir_list(int dir_fd, const char *path, size_t ceiling, struct nd_strings *ret);
[[nodiscard]] struct nd_error *nd_dir_list_files(int dir_fd, const char *path, size_t ceiling,
                                                 struct nd_strings *ret); /* regular ones */

/* Makes creations, renames and removals in a directory survive a power cut. path is for the
 * message. */
[[nodiscard]] struct nd_error *nd_dir_sync(int fd, const char *path);

/* For nd_cleanup(). */
static inline void nd_dir_close(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}
