/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h
 *
 * Theory of operation
 *   Most entries of a layer follow their neighbour, so the last parent is kept open (@cached_fd)
 *   under its spelling in the archive. For another parent one openat2(RESOLVE_IN_ROOT) usually
 *   finds it. On ENOENT, or if the real path is needed, walk() goes component by component: @here
 *   is the path so far and has no symbolic link, @ahead is the rest; a link's target is prepended
 *   to it. Each step passes RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS to the kernel, so a mistake in this
 *   file leads to an error and not to an escape. */
#include "pull/unpack/tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "sys/calls.h"

enum { PATH_BYTES = 4096 };

int pull_tree_open(int root_fd, const char *path, int flags, bool scoped) {
        struct open_how how = {
                .flags = (uint64_t) flags | O_CLOEXEC,
                .resolve = RESOLVE_NO_MAGICLINKS | (scoped ? RESOLVE_IN_ROOT : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS),
        };
        long fd = syscall(SYS_openat2, root_fd, *path ? path : ".", &how, sizeof how);

        return fd < 0 ? -errno : (int) fd;
}

void pull_tree_init(int root_fd, struct pull_tree *ret) {
        *ret = (struct pull_tree) {.root = root_fd, .cached_fd = -EBADF};
}

void pull_tree_invalidate(struct pull_tree *tree) {
        free(nd_take_ptr(tree->cached_path));
        nd_close_fd(&tree->cached_fd);
}

void pull_tree_done(struct pull_tree *tree) {
        pull_tree_invalidate(tree);
        nd_vector_each (mark, &tree->marks) {
                free(mark->path);
        }
        nd_vector_done(&tree->marks);
        nd_map_done(&tree->implied);
}

static const char *inode_key(ino_t inode, char ret[static 24]) {
        (void) snprintf(ret, 24, "%llx", (unsigned long long) inode);
        return ret;
}

struct nd_error *pull_tree_mark(struct pull_tree *tree, enum pull_mark_kind kind, ino_t inode, char *path) {
        nd_autofree char *owned = path;
        char key[24];

        if (tree->marks.count >= TREE_MARKS)
                return nd_error_new(ND_EXHAUSTED, 0, "the layer has more than %d whiteouts and implied directories",
                                    TREE_MARKS);
        nd_vector_push(&tree->marks, ((struct pull_mark) {.kind = kind, .path = nd_take_ptr(owned)}));
        if (kind == MARK_IMPLIED)
                (void) nd_map_put(&tree->implied, inode_key(inode, key), (void *) (uintptr_t) tree->marks.count);
        return nullptr;
}

void pull_tree_unmark(struct pull_tree *tree, ino_t inode) {
        uintptr_t number;
        char key[24];

        if (tree->implied.count == 0)
                return;
        number = (uintptr_t) nd_map_remove(&tree->implied, inode_key(inode, key));
        if (number > 0)
                free(nd_take_ptr(tree->marks.items[number - 1].path));
}

/* Removes the last component. */
static void ascend(struct nd_text *path) {
        char *slash;

        if (path->length == 0)
                return;
        slash = strrchr(path->bytes, '/');
        path->length = slash ? (size_t) (slash - path->bytes) : 0;
        path->bytes[path->length] = '\0';
}

static void descend(struct nd_text *path, const char *name, size_t length) {
        if (path->length > 0)
                nd_text_add(path, "/");
        nd_text_append(path, name, length);
}

struct nd_error *pull_tree_clean_path(const char *path, struct nd_text *ret) {
        nd_autotext struct nd_text clean = ND_TEXT(PATH_BYTES);
        size_t depth = 0;

        while (*path) {
                size_t length = strcspn(path, "/");

                if (length == 2 && path[0] == '.' && path[1] == '.') {
                        ascend(&clean);
                        depth -= depth > 0;
                } else if (length > 0 && !(length == 1 && path[0] == '.')) {
                        descend(&clean, path, length);
                        if (++depth > TREE_DEPTH)
                                return nd_error_new(ND_EXHAUSTED, ENAMETOOLONG,
                                                    "the layer has a path of more than %d components", TREE_DEPTH);
                        if (length >= TREE_NAME)
                                return nd_error_new(ND_INVALID, ENAMETOOLONG, "the layer has a name of more than 255 bytes");
                }
                path += length + (path[length] == '/');
        }
        if (clean.overflow)
                return nd_error_new(ND_INVALID, ENAMETOOLONG, "the layer has a path of more than %d bytes", PATH_BYTES);
        nd_text_done(ret);
        *ret = nd_take(clean, (struct nd_text) {});
        return nullptr;
}

/* Creates a directory that a path implies. after_whiteout: it replaces an entry that hid the lower
 * layers, and must hide them as well. */
static struct nd_error *imply(struct pull_tree *tree, const char *path, bool after_whiteout) {
        nd_autoclose int fd = -EBADF;
        struct stat st;

        if (after_whiteout && nd_sys->unlinkat(tree->root, path, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "replace '%s'", path);
        if (nd_sys->mkdirat(tree->root, path, 0755) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "make directory '%s'", path);
        tree->made++;
        fd = pull_tree_open(tree->root, path, O_RDONLY | O_DIRECTORY, false);
        if (fd < 0 || fstat(fd, &st) < 0)
                return nd_error_new(ND_INTERNAL, fd < 0 ? -fd : errno, "open directory '%s'", path);
        if (after_whiteout) {
                if (nd_sys->fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "mark '%s' as opaque", path);
                return nullptr;
        }
        return pull_tree_mark(tree, MARK_IMPLIED, st.st_ino, nd_strdup(path));
}

/* Prepends a link's target to the rest of the path. */
static struct nd_error *follow(int link_fd, struct nd_text *here, struct nd_text *ahead) {
        nd_autotext struct nd_text longer = ND_TEXT(2 * PATH_BYTES);
        char target[PATH_BYTES];
        ssize_t n = readlinkat(link_fd, "", target, sizeof target);

        if (n <= 0 || n >= PATH_BYTES)
                return nd_error_new(ND_INVALID, ENAMETOOLONG, "the layer has a symbolic link that cannot be followed");
        if (target[0] == '/')
                while (here->length > 0)
                        ascend(here);
        nd_text_append(&longer, target, (size_t) n);
        nd_text_add(&longer, "/");
        nd_text_add(&longer, nd_text_get(ahead));
        if (longer.overflow)
                return nd_error_new(ND_INVALID, ENAMETOOLONG, "symbolic links of the layer make a path too long");
        nd_text_done(ahead);
        *ahead = nd_take(longer, (struct nd_text) {});
        return nullptr;
}

/* Handles one component: enters a directory, prepends a link's target to the rest, or creates a
 * missing directory. */
static struct nd_error *step(struct pull_tree *tree, const char *name, size_t length, bool make, struct nd_text *here,
                             struct nd_text *ahead, unsigned *links) {
        nd_autoclose int fd = -EBADF;
        struct stat st;

        descend(here, name, length);
        if (here->overflow)
                return nd_error_new(ND_INVALID, ENAMETOOLONG, "symbolic links of the layer make a path too long");
        fd = pull_tree_open(tree->root, nd_text_get(here), O_PATH | O_NOFOLLOW, false);
        if (fd == -ENOENT && make)
                return imply(tree, nd_text_get(here), false);
        if (fd < 0 || fstat(fd, &st) < 0)
                return nd_error_new(nd_error_code_of(fd < 0 ? -fd : errno), fd < 0 ? -fd : errno, "'%s'", nd_text_get(here));
        if (S_ISDIR(st.st_mode))
                return nullptr;
        if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0) && make)
                return imply(tree, nd_text_get(here), true);
        if (!S_ISLNK(st.st_mode))
                return nd_error_new(ND_INVALID, ENOTDIR, "the layer uses '%s' as a directory, but it is not one",
                                    nd_text_get(here));
        if (++*links > TREE_LINKS)
                return nd_error_new(ND_INVALID, ELOOP, "the layer has a loop of symbolic links at '%s'", nd_text_get(here));
        ascend(here);
        return follow(fd, here, ahead);
}

/* Walks the components of a directory's path; at the end @here is its real path. */
static struct nd_error *walk(struct pull_tree *tree, const char *directory, bool make, struct nd_text *here) {
        nd_autotext struct nd_text ahead = ND_TEXT(2 * PATH_BYTES);
        unsigned links = 0;

        nd_text_add(&ahead, directory);
        while (ahead.length > 0) {
                nd_autotext struct nd_text rest = ND_TEXT(2 * PATH_BYTES);
                size_t length = strcspn(ahead.bytes, "/");

                nd_text_add(&rest, ahead.bytes + length + (ahead.bytes[length] == '/'));
                if (length == 2 && memcmp(ahead.bytes, "..", 2) == 0)
                        ascend(here);
                else if (length > 0 && !(length == 1 && ahead.bytes[0] == '.'))
                        nd_try(step(tree, ahead.bytes, length, make, here, &rest, &links));
                nd_text_done(&ahead);
                ahead = nd_take(rest, (struct nd_text) {});
        }
        return nullptr;
}

static struct nd_error *open_parent(struct pull_tree *tree, const char *directory, bool make, char **ret_true_path) {
        nd_autotext struct nd_text here = ND_TEXT(PATH_BYTES);
        int fd = -ENOENT;

        if (!ret_true_path) {
                if (tree->cached_path && nd_streq(tree->cached_path, directory))
                        return nullptr;
                fd = pull_tree_open(tree->root, directory, O_RDONLY | O_DIRECTORY, true);
        }
        if (fd < 0) {
                nd_try(walk(tree, directory, make, &here));
                fd = pull_tree_open(tree->root, nd_text_get(&here), O_RDONLY | O_DIRECTORY, false);
                if (fd < 0)
                        return nd_error_new(nd_error_code_of(-fd), -fd, "open directory '%s'", nd_text_get(&here));
        }
        pull_tree_invalidate(tree);
        tree->cached_fd = fd;
        tree->cached_path = nd_strdup(directory);
        if (ret_true_path)
                *ret_true_path = nd_strdup(nd_text_get(&here));
        return nullptr;
}

struct nd_error *pull_tree_find(struct pull_tree *tree, const char *path, bool make, int *ret_dir_fd,
                                char ret_name[static TREE_NAME], char **ret_directory) {
        nd_autotext struct nd_text clean = {};
        const char *slash, *name;

        nd_try(pull_tree_clean_path(path, &clean));
        slash = strrchr(nd_text_get(&clean), '/');
        name = slash ? slash + 1 : nd_text_get(&clean);
        (void) snprintf(ret_name, TREE_NAME, "%s", name);
        if (slash)
                clean.bytes[slash - clean.bytes] = '\0';
        nd_try(open_parent(tree, slash ? clean.bytes : "", make, ret_directory));
        *ret_dir_fd = tree->cached_fd;
        return nullptr;
}
