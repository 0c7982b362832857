/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - removing what strangers have written
 *
 * A tree may be as deep and as broad as its writer liked. Nothing is followed out of it: no link, and no mount, which is an error. Blocks as long as
 * it takes: for workers. */
#pragma once

#include "base/error.h"

/* Removes a file, or a directory with all that is in it. What is not there is done already. */
[[nodiscard]] struct nd_error *nd_tree_remove(int dir_fd, const char *path);
