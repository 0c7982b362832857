/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h
 *
 * Theory of operation
 *   Depth first, one open directory per level. A directory at level @DEPTH is renamed up into the
 *   tree's root, under a name of ours, and removed from there: so neither the stack nor the number
 *   of descriptors grows with the untrusted tree. Each pass over the root ends with fewer entries
 *   than before or with an error. */
#include "sys/tree.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "sys/calls.h"
#include "sys/file.h"

enum {
        DEPTH = 32,
};

struct removal {
        int root;
        unsigned moved; /* directories renamed into root so far */
};

static struct nd_error *cannot(const char *what, const char *name) {
        return nd_error_new(nd_error_code_of(errno), errno, "%s '%s'", what, name);
}

/* Opens a directory that is not a mount point, without following links. */
static int enter(int dir_fd, const char *name) {
        struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                               .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};

        return nd_sys->openat2(dir_fd, name, &how, sizeof how);
}

static struct nd_error *empty(struct removal *removal, int fd, const char *path, unsigned level);

static struct nd_error *move_up(struct removal *removal, int dir_fd, const char *name) {
        char place[32];

        for (;;) {
                (void) snprintf(place, sizeof place, ".removed-%u", removal->moved++);
                if (nd_sys->renameat(dir_fd, name, removal->root, place) == 0)
                        return nullptr;
                if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
                        return cannot("move", name);
        }
}

static struct nd_error *remove_directory(struct removal *removal, int dir_fd, const char *name, unsigned level) {
        int fd;

        if (level >= DEPTH)
                return move_up(removal, dir_fd, name);
        fd = enter(dir_fd, name);
        if (fd < 0 && errno == ENOENT)
                return nullptr;
        if (fd < 0)
                return cannot("enter", name);
        nd_try(empty(removal, fd, name, level));
        if (nd_sys->unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return cannot("remove directory", name);
        return nullptr;
}

static struct nd_error *remove_entry(struct removal *removal, int dir_fd, const char *name, unsigned level) {
        if (nd_sys->unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
                return nullptr;
        if (errno != EISDIR)
                return cannot("remove", name);
        return remove_directory(removal, dir_fd, name, level);
}

/* Takes ownership of the descriptor. */
static struct nd_error *empty(struct removal *removal, int fd, const char *path, unsigned level) {
        nd_cleanup(nd_dir_close) DIR *directory = fdopendir(fd);
        struct dirent *entry;

        if (!directory) {
                struct nd_error *error = cannot("read directory", path);

                (void) close(fd);
                return error;
        }
        while (errno = 0, (entry = readdir(directory)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        nd_try(remove_entry(removal, dirfd(directory), entry->d_name, level + 1));
        return errno != 0 ? cannot("read directory", path) : nullptr;
}

static struct nd_error *remove_tree(int dir_fd, const char *name) {
        nd_autoclose int root = -EBADF;
        unsigned before;

        if (nd_sys->unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
                return nullptr;
        if (errno != EISDIR)
                return cannot("remove", name);
        root = enter(dir_fd, name);
        if (root < 0)
                return cannot("enter", name);
        struct removal removal = {.root = root};
        do {
                int fd = enter(root, ".");

                before = removal.moved;
                if (fd < 0)
                        return cannot("enter", name);
                nd_try(nd_error_wrap(empty(&removal, fd, name, 0), "in '%s'", name));
        } while (removal.moved != before);
        if (nd_sys->unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return cannot("remove directory", name);
        return nullptr;
}

/* The path to the tree may cross mounts; only its last component may not. */
struct nd_error *nd_tree_remove(int dir_fd, const char *path) {
        nd_autoerror struct nd_error *error = nullptr;
        const char *slash = strrchr(path, '/');
        nd_autofree char *parent = nullptr;
        nd_autoclose int fd = -EBADF;

        if (!slash)
                return remove_tree(dir_fd, path);
        parent = nd_strndup(path, (size_t) (slash - path) + (slash == path));
        error = nd_dir_open(dir_fd, parent, &fd);
        if (error)
                return nd_error_errno(error) == ENOENT ? nullptr : nd_take_ptr(error);
        return nd_error_wrap(remove_tree(fd, slash + 1), "'%s'", parent);
}
