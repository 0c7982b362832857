/* SPDX-License-Identifier: Apache-2.0 */
/* tree-copy.h - copies untrusted directory trees
 *
 * Copies directories, files, symbolic links and FIFOs, with owners, modes, times, and the
 * attributes user.*, security.capability and ACLs; holes stay holes. Follows no link and enters no
 * mount. Devices and sockets are skipped, and hard links become separate files. Nothing is synced.
 * Blocks as long as it takes: run it in a worker. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
        ND_COPY_DEPTH = 256, /* maximum nesting of directories; deeper is an error */
};

/* Fills the empty directory `to` with the contents of `from`, and copies the metadata. Both must be
 * open for reading; no other process may write to `to`. */
[[nodiscard]] struct nd_error *nd_tree_copy(int from, int to);

/* The IDs of a user namespace: 0 to count - 1 inside are first to first + count - 1 here. */
struct nd_tree_shift {
        uint32_t uid, gid; /* the first */
        uint32_t count;
};

/* Enough for every shifted value: a file capability grows. */
enum { ND_SHIFT_GROWTH = 4 };

/* Shifts the value of an extended attribute in place, as far as it has IDs, and returns its new
 * length. The buffer has room for ND_SHIFT_GROWTH bytes more. */
[[nodiscard]] size_t nd_tree_shift_attribute(const struct nd_tree_shift *shift, const char *name, unsigned char *value,
                                             size_t length);

/* The same for a layer of an image, as an idmapped mount would show it: owners, ACLs and the root
 * of file capabilities are shifted. Hard links stay hard links and whiteouts are copied. A file
 * with an owner beyond the range gets ours, which does not exist in the namespace, and loses its
 * set-user-ID and set-group-ID bits. */
[[nodiscard]] struct nd_error *nd_tree_copy_shifted(int from, int to, const struct nd_tree_shift *shift);

/* Shifts the owners of a tree in place; shifted ones stay. It follows no link and
 * enters no mount; processes of the namespace may change the tree meanwhile. root may be a file. */
[[nodiscard]] struct nd_error *nd_tree_shift(int root, const struct nd_tree_shift *shift);
