/* SPDX-License-Identifier: Apache-2.0 */
/* finalize.h - what a layer's tree can only be given when the layers below it are there
 *
 * A directory that an archive implies but does not contain is, in the image, the directory of a layer below: it takes owner, mode,
 * time and attributes from there. A whiteout that hides nothing is removed: in a directory that exists in one layer only overlayfs
 * would list it as a broken device. */
#pragma once

#include "base/error.h"

/* The trees below, the topmost first; a tree is opened when it is needed, returning a descriptor or -errno. */
struct pull_finalize_lower {
        size_t count;
        int (*open)(void *userdata, size_t index);
        void *userdata;
};

/* marks are pull_unpack_finish()'s. They come from a process that read hostile bytes: anything in them is checked again. */
[[nodiscard]] struct nd_error *pull_finalize(int root_fd, const char *marks, size_t length,
                                             const struct pull_finalize_lower *lower);
