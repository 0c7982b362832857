/* SPDX-License-Identifier: Apache-2.0 */
/* finalize.h - the part of unpacking that needs the layers below
 *
 * A directory that an archive implies but does not contain is, in the image, the directory of a
 * lower layer: it gets owner, mode, time and attributes from there. A whiteout that hides nothing
 * is removed: in a directory that exists in one layer only, overlayfs would list it as a broken
 * device. */
#pragma once

#include "base/error.h"

/* The lower trees, topmost first; open() returns a descriptor or -errno when a tree is needed. */
struct pull_finalize_lower {
        size_t count;
        int (*open)(void *userdata, size_t index);
        void *userdata;
};

/* marks come from pull_unpack_finish() in a process that read hostile data: everything in them is
 * checked again. */
[[nodiscard]] struct nd_error *pull_finalize(int root_fd, const char *marks, size_t length,
                                             const struct pull_finalize_lower *lower);
