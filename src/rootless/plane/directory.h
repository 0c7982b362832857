/* SPDX-License-Identifier: Apache-2.0 */
/* directory.h - the directory of a control plane, whose files only the user may read
 *
 * Neither it nor a file in it may be a symbolic link or accessible to other users: what is not as
 * it should be is refused and never replaced. */
#pragma once

#include "base/error.h"

/* URL of the API server for other hosts. */
#define PLANE_SERVER "server.url"

enum { PLANE_FILE_BYTES = 1 << 20 };

/* Opens the directory; make: creates it in an existing directory. */
[[nodiscard]] struct nd_error *rootless_plane_open(const char *path, bool make, int *ret_fd);

/* nullptr if there is no such file. The caller wipes secrets. */
[[nodiscard]] struct nd_error *rootless_plane_read(int fd, const char *name, char **ret);

/* Writes a file unless it has that text already. */
[[nodiscard]] struct nd_error *rootless_plane_write(int fd, const char *name, const char *text);

void rootless_plane_wipe(char *text); /* and frees it */
