/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - resolves an archive's path in the tree of a layer to a directory descriptor and a name
 *
 * Every path resolves to a place inside the root: "..", absolute paths and symbolic links are
 * resolved as if the root were "/", and the last component is never followed. Directories that a
 * path implies are created and recorded as marks; finalize.c gives them the metadata that they have
 * in the lower layers. */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"

enum {
        TREE_DEPTH = 256,    /* limit of components of a path */
        TREE_LINKS = 40,     /* limit of symbolic links in a path, as in the kernel */
        TREE_MARKS = 200000, /* limit of implied directories and whiteouts per layer */
};

enum pull_mark_kind {
        MARK_IMPLIED = 'd',  /* a directory that the archive did not contain */
        MARK_WHITEOUT = 'w', /* a whiteout, needed only if there is a lower entry */
};

struct pull_mark {
        enum pull_mark_kind kind;
        char *path; /* without symbolic links, relative to the root; nullptr = withdrawn */
};

struct pull_tree {
        int root;          /* borrowed */
        char *cached_path; /* the last parent as spelled in the archive */
        int cached_fd;
        nd_vector(struct pull_mark) marks;
        struct nd_map implied; /* inode number as text -> index in marks + 1 */
        uint64_t made;         /* number of created directories */
};

void pull_tree_init(int root_fd, struct pull_tree *ret);
void pull_tree_done(struct pull_tree *tree);

/* Splits a path and finds the directory that holds its last component. The tree owns the
 * descriptor, which is valid until the next call. The name is "" for the root itself. If
 * path_to_name is not nullptr, it gets the directory's path without symbolic links, which needs a
 * slower walk. make: creates missing directories; otherwise ND_NOT_FOUND. */
enum {
        TREE_NAME = 256, /* with the terminator */
};
[[nodiscard]] struct nd_error *pull_tree_find(struct pull_tree *tree, const char *path, bool make, int *ret_dir_fd,
                                              char ret_name[static TREE_NAME], char **ret_directory);

/* To be called after a removal or rename: drops the cached parent. */
void pull_tree_invalidate(struct pull_tree *tree);

[[nodiscard]] struct nd_error *pull_tree_mark(struct pull_tree *tree, enum pull_mark_kind kind, ino_t inode,
                                              char *path); /* takes the path */
/* the archive has that directory after all */
void pull_tree_unmark(struct pull_tree *tree, ino_t inode);

/* Normalizes a path lexically: no empty or "." components, ".." resolved and never above the root,
 * no slashes at the ends. "" is the root. */
[[nodiscard]] struct nd_error *pull_tree_clean_path(const char *path, struct nd_text *ret);

/* openat2() below a root: scoped resolves symbolic links inside of it (RESOLVE_IN_ROOT), otherwise
 * none are followed. Returns a descriptor or -errno. */
int pull_tree_open(int root_fd, const char *path, int flags, bool scoped);
