/* SPDX-License-Identifier: Apache-2.0 */
/* tree-copy.h - copying what strangers have written
 *
 * Directories, files, symbolic links and FIFOs come over, with owners, modes, times, and the attributes user.*, security.capability and ACLs; holes stay holes. No link is
 * followed and no mount entered. Devices and sockets are left out, and hard links become files of their own. Nothing is synced. Blocks as long as
 * it takes: for workers. */
#pragma once

#include "base/error.h"

enum {
        ND_COPY_DEPTH = 256, /* directories in each other; what is deeper is an error */
};

/* Fills the empty directory `to` with what is in `from`, and makes it like that. Both must be open for reading; nobody else may write to `to`. */
[[nodiscard]] struct nd_error *nd_tree_copy(int from, int to);
