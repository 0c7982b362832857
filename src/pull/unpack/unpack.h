/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.h - unpacks one layer's archive into a directory for overlayfs
 *
 *      in the archive                     on disk
 *      .wh.NAME                           NAME as character device 0:0; nothing in the lowest layer
 *      .wh..wh..opq                       user.overlay.opaque=y on the directory; nothing in the
 *                                         lowest layer
 *      .wh..wh.*                          nothing: metadata of aufs
 *      .wh., .wh.., .wh..., a/.wh.b/c     rejected
 *      directory over directory           merged, with the newer metadata
 *      anything over anything else        replaced; a directory that replaces a whiteout is opaque
 *      "./", ".", "/"                     nothing: an image cannot change the root's metadata (as
 *                                         in containerd)
 *      hard link                          to a name of the same layer, never to a whiteout
 *      character device 0:0               rejected: it would be an undeclared whiteout
 *      other devices                      omitted, as if the name were whited out: a user namespace
 *                                         cannot create them, and a container gets its devices
 *                                         from the runtime, not from an image
 *      FIFO                               created
 *      xattr user.overlay.*, trusted.*,   dropped: overlayfs or the host would interpret them
 *      security.* except capability
 *      xattr security.capability          kept if version 2; the kernel stores it as version 3 of
 *                                         root
 *      other user.*, POSIX ACLs           kept if the filesystem supports them
 *      owners, modes, times               kept, also setuid, setgid, sticky; directories last
 *      owners that a node with few IDs    root, without setuid and setgid, which would be root's;
 *      does not have                      ACLs with such owners are dropped. On other nodes:
 *                                         rejected */
#pragma once

#include "oci/layer.h"
#include "pull/archive/tar.h"
#include "pull/unpack/tree.h"

enum {
        UNPACK_ENTRIES = 5000000, /* limit per layer */
};

struct pull_unpack_result {
        uint64_t size; /* bytes on disk, in whole blocks */
        uint64_t inodes;
        struct nd_layer_owner owner; /* the highest one, as set on disk */
};

struct pull_unpack;

/* root_fd is the layer's empty fs directory, borrowed. lowest: there is no layer below. */
[[nodiscard]] struct pull_unpack *pull_unpack_new(int root_fd, bool lowest);

/* Owners that this node does not have become root. The node must outlive the unpacker. */
struct nd_own_userns;
void pull_unpack_squash_owners(struct pull_unpack *unpack, const struct nd_own_userns *node);
void pull_unpack_free(struct pull_unpack *unpack);
static inline void pull_unpack_done(struct pull_unpack **unpack) {
        pull_unpack_free(*unpack);
        *unpack = nullptr;
}

/* Returns the sink for a tar reader. */
struct pull_tar_sink pull_unpack_sink(struct pull_unpack *unpack);

/* To be called after the last entry. The marks list what depends on the lower layers: for each a
 * letter for its kind, a path and a null byte. */
[[nodiscard]] struct nd_error *pull_unpack_finish(struct pull_unpack *unpack, struct nd_text *ret_marks,
                                                  struct pull_unpack_result *ret);
