/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - places in the tree of a layer: from an archive's path to a directory descriptor and a name
 *
 * Whatever an archive says, a place is inside of the root: "..", absolute paths and symbolic links are resolved as if the root were
 * "/", and the last component is never followed. Directories that a path implies are made and remembered as marks, for
 * finalize.c to give them the metadata that they have in the layers below. */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"

enum {
        TREE_DEPTH = 256,    /* most components of a path */
        TREE_LINKS = 40,     /* most symbolic links on a way, as the kernel has it */
        TREE_MARKS = 200000, /* most implied directories and whiteouts of a layer */
};

enum pull_mark_kind {
        MARK_IMPLIED = 'd',  /* a directory that the archive did not contain */
        MARK_WHITEOUT = 'w', /* a whiteout, which is only needed if there is something below */
};

struct pull_mark {
        enum pull_mark_kind kind;
        char *path; /* without symbolic links, relative to the root; nullptr = withdrawn */
};

struct pull_tree {
        int root;          /* borrowed */
        char *cached_path; /* the archive's words for the last parent */
        int cached_fd;
        nd_vector(struct pull_mark) marks;
        struct nd_map implied; /* inode number as text -> its index + 1 in marks */
        uint64_t made;         /* directories made on the way */
};

void pull_tree_init(int root_fd, struct pull_tree *ret);
void pull_tree_done(struct pull_tree *tree);

/* Splits a path and finds the directory that holds its last component. The descriptor is the tree's and lives until the next call. The
 * name is "" for the root itself. path_to_name may be nullptr; otherwise it gets the directory's path without symbolic
 * links, which costs a slower walk. make: directories that are not there are made; otherwise ND_NOT_FOUND. */
enum {
        TREE_NAME = 256, /* with the terminator */
};
[[nodiscard]] struct nd_error *pull_tree_find(struct pull_tree *tree, const char *path, bool make, int *ret_dir_fd,
                                              char ret_name[static TREE_NAME], char **ret_directory);

/* Something was removed or renamed: what is cached may be wrong. */
void pull_tree_invalidate(struct pull_tree *tree);

[[nodiscard]] struct nd_error *pull_tree_mark(struct pull_tree *tree, enum pull_mark_kind kind, ino_t inode,
                                              char *path);  /* takes the path */
void pull_tree_unmark(struct pull_tree *tree, ino_t inode); /* the archive had that directory after all */

/* Cleans a path by its words: no empty or "." components, ".." resolved and never above the root, no slash at the ends. "" is the root. */
[[nodiscard]] struct nd_error *pull_tree_clean_path(const char *path, struct nd_text *ret);

/* openat2() below a root: scoped gives resolution inside of it (RESOLVE_IN_ROOT), otherwise no symbolic link at all is followed.
 * Returns a descriptor or -errno. */
int pull_tree_open(int root_fd, const char *path, int flags, bool scoped);
