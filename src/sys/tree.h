/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - removes untrusted directory trees
 *
 * A tree may be arbitrarily deep and broad. The removal never leaves it: it follows no link, and a
 * mount inside is an error. Blocks as long as it takes: run it in a worker. */
#pragma once

#include "base/error.h"

/* Removes a file, or a directory with its contents. A missing path is fine. */
[[nodiscard]] struct nd_error *nd_tree_remove(int dir_fd, const char *path);
