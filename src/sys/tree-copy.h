/* SPDX-License-Identifier: Apache-2.0 */
/* tree-copy.h - copies untrusted directory trees
 *
 * Copies directories, files, symbolic links and FIFOs, with owners, modes, times, and the
 * attributes user.*, security.capability and ACLs; holes stay holes. Follows no link and enters no
 * mount. Devices and sockets are skipped, and hard links become separate files. Nothing is synced.
 * Blocks as long as it takes: run it in a worker. */
#pragma once

#include "base/error.h"

enum {
        ND_COPY_DEPTH = 256, /* maximum nesting of directories; deeper is an error */
};

/* Fills the empty directory `to` with the contents of `from`, and copies the metadata. Both must be
 * open for reading; no other process may write to `to`. */
[[nodiscard]] struct nd_error *nd_tree_copy(int from, int to);
