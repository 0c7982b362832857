/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - files and directories that the kernel knows, by number
 *
 * A node is found again by its file handle where the filesystem has stable ones, else by its parent
 * and name. Its O_PATH descriptor is a cache: a bounded number of nodes has one, apart from those
 * that are in use. */
#pragma once

#include <sys/stat.h>

#include "bridge/thread.h"

/* Finds out what the filesystem can do, and makes the node of the volume's root. */
[[nodiscard]] struct nd_error *bridge_node_root(struct bridge_state *state);

/* The node with this number, with a descriptor, until bridge_node_put(). -ESTALE: it does not exist
 * any more. */
[[nodiscard]] int bridge_node_get(struct bridge_state *state, uint64_t id, struct bridge_node **ret);
void bridge_node_put(struct bridge_state *state, struct bridge_node *node);

/* Consumes an O_PATH descriptor of a file. Its node gets a lookup, which is recorded as given by
 * the thread's reply. */
[[nodiscard]] int bridge_node_intern(struct bridge_thread *thread, int fd, const struct stat *st, struct bridge_node *parent,
                                     const char *name, uint64_t *ret_id);

/* Looks a name up, with the thread's credentials, and interns it. */
[[nodiscard]] int bridge_node_lookup(struct bridge_thread *thread, struct bridge_node *parent, const char *name,
                                     struct stat *ret_st, uint64_t *ret_id);

/* The kernel has dropped this many lookups. */
void bridge_node_forget(struct bridge_state *state, uint64_t id, uint64_t count);

/* Opens a node's file. Returns a descriptor or -errno; -ESTALE makes the kernel look up the path
 * again. */
[[nodiscard]] int bridge_node_open(struct bridge_thread *thread, struct bridge_node *node, int flags);

/* Notes the attributes that the kernel gets with a reply; whether these are the ones it has. */
void bridge_node_note(struct bridge_node *node, const struct stat *st);
[[nodiscard]] bool bridge_node_has(const struct bridge_node *node, const struct stat *st);

/* Attributes, as recent as the filesystem has them. */
[[nodiscard]] int bridge_node_stat(const struct bridge_thread *thread, int fd, struct stat *ret);

/* A file before its name is removed or replaced. Its inode number may be another file's
 * afterwards. */
struct bridge_named {
        struct stat st; /* st_ino 0: there was none */
        uint64_t identity;
};

/* Closes our descriptor of the file, which NFS would count as a use. Returns the inode number. */
uint64_t bridge_node_let_go(struct bridge_thread *thread, struct bridge_node *parent, const char *name,
                            struct bridge_named *ret);

/* The name was removed, or now is the name of another file. */
void bridge_node_removed(struct bridge_state *state, const struct bridge_named *named);
void bridge_node_renamed(struct bridge_state *state, const struct stat *st, const struct bridge_node *parent,
                         const char *name);

/* Closes an open file, its passthrough registration and its locks. */
void bridge_node_release(struct bridge_state *state, uint64_t file);
