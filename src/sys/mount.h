/* SPDX-License-Identifier: Apache-2.0 */
/* mount.h - the new mount API: trees cloned, idmapped and attached by descriptor */
#pragma once

#include "base/error.h"
#include "sys/calls.h"

/* A detached copy of the mount that holds the path, as a descriptor; recursive copies submounts
 * too. */
[[nodiscard]] struct nd_error *nd_mount_clone(int dir_fd, const char *path, bool recursive, int *ret_fd);

/* Idmaps a detached tree with the maps of a user namespace. ND_UNIMPLEMENTED if its filesystem does
 * not support it (EINVAL from the kernel), with the filesystem's name in the text. */
[[nodiscard]] struct nd_error *nd_mount_idmap(int tree_fd, int userns_fd, bool recursive);

/* Sets MOUNT_ATTR_* flags, or MS_PRIVATE or MS_SLAVE, on a tree, given a descriptor of its root.
 * The tree may already be attached. */
[[nodiscard]] struct nd_error *nd_mount_set(int tree_fd, uint64_t attributes, bool recursive);
[[nodiscard]] struct nd_error *nd_mount_propagation(int tree_fd, uint64_t propagation, bool recursive);

/* Attaches a detached tree to a path; the last component may not be a symbolic link. "" is dir_fd
 * itself, which may refer to a file. */
[[nodiscard]] struct nd_error *nd_mount_attach(int tree_fd, int dir_fd, const char *path);

/* Lazily unmounts everything at a path. Nothing mounted there is fine, and so is a missing path. */
[[nodiscard]] struct nd_error *nd_mount_detach(const char *path);

/* A new filesystem instance, configured step by step, then made into a detached tree. */
struct nd_mount_fs_option {
        const char *key;
        const char *value; /* nullptr for a flag */
};
[[nodiscard]] struct nd_error *nd_mount_fs_make(const char *type, const struct nd_mount_fs_option *options, size_t count,
                                                unsigned attributes, int *ret_fd);

/* Moves the calling process into a private mount namespace: its mounts are not visible outside. */
[[nodiscard]] struct nd_error *nd_mount_namespace_private(void);

/* Replaces the root of the calling process, which is already in a private mount namespace, with an
 * empty tmpfs and drops all other mounts. Any directory will do. */
[[nodiscard]] struct nd_error *nd_mount_namespace_empty(const char *directory);

/* The line of our mount table for the mount that a file is on, without the newline; "" if it has
 * none. */
[[nodiscard]] struct nd_error *nd_mount_table_line(int fd, char **ret);

/* The filesystem's type in the mount table: "ext4", "nfs4", "fuse.sshfs"; "unknown" if the table
 * has no such mount. Does not wait for the filesystem's server. */
[[nodiscard]] struct nd_error *nd_mount_fs_type(int fd, char **ret);

/* "ext4", "tmpfs" ...; the magic number in hex if the name is not known. The buffer is static. */
const char *nd_mount_fs_name(int fd);
