/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.h - one layer's archive into one directory that overlayfs can stack
 *
 *      in the archive                          on disk
 *      .wh.NAME                                NAME as character device 0:0; in the lowest layer nothing
 *      .wh..wh..opq                            user.overlay.opaque=y on the directory; in the lowest layer nothing
 *      .wh..wh.*                               nothing: notes that aufs wrote for itself
 *      .wh., .wh.., .wh..., a/.wh.b/c          refused
 *      directory over directory                merged, the newer metadata
 *      anything over anything else             replaced; a directory that replaces a whiteout is opaque
 *      "./", ".", "/"                          nothing: the root's own metadata is not an image's business (as containerd)
 *      hard link                               to a name of the same layer, never to a whiteout
 *      character device 0:0                    refused: it would be a whiteout that the image's author did not declare as one
 *      other devices                           left out, as if the name were whited out: a user namespace cannot make them, and
 *                                              a container gets its devices from the runtime, not from an image
 *      FIFO                                    made
 *      xattr user.overlay.*, trusted.*,        dropped: they would speak to overlayfs or to the host
 *      security.* but capability
 *      xattr security.capability               kept when it is of version 2; the kernel stores it as version 3 of root
 *      other user.*, POSIX ACLs                kept where the filesystem can
 *      owners, modes, times                    as they are; setuid, setgid and sticky too; directories' times last */
#pragma once

#include "pull/archive/tar.h"
#include "pull/unpack/tree.h"

enum {
        UNPACK_ENTRIES = 5000000, /* most entries of one layer */
};

struct pull_unpack_result {
        uint64_t size; /* bytes on disk, in whole blocks */
        uint64_t inodes;
};

struct pull_unpack;

/* root_fd is the layer's empty fs directory, borrowed. lowest: no layer lies below. */
[[nodiscard]] struct pull_unpack *pull_unpack_new(int root_fd, bool lowest);
void pull_unpack_free(struct pull_unpack *unpack);
static inline void pull_unpack_done(struct pull_unpack **unpack) {
        pull_unpack_free(*unpack);
        *unpack = nullptr;
}

/* Where a tar reader sends what it finds. */
struct pull_tar_sink pull_unpack_sink(struct pull_unpack *unpack);

/* After the last entry. The marks say what depends on the layers below: a kind's letter, a path and a null byte for each. */
[[nodiscard]] struct nd_error *pull_unpack_finish(struct pull_unpack *unpack, struct nd_text *ret_marks,
                                                  struct pull_unpack_result *ret);
