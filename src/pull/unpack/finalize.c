/* SPDX-License-Identifier: Apache-2.0 */
/* finalize.c - see finalize.h
 *
 * Theory of operation
 *   find_in_lower() determines what overlayfs would show at a path without this layer: layer by
 *   layer from the top, component by component. A whiteout or anything but a directory ends the
 *   search; an opaque directory ends it after its own layer; a missing name continues it in the
 *   next lower layer. */
#include "pull/unpack/finalize.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/text.h"
#include "pull/unpack/tree.h"
#include "sys/calls.h"

enum { ATTRIBUTE_NAMES = 4096, ATTRIBUTE_BYTES = 64 * 1024 };

enum lookup_result {
        MISSING, /* not in this layer: try the next one */
        FOUND,   /* the descriptor is open */
        HIDDEN,  /* nothing is visible: lower layers are hidden */
};

static bool is_opaque(int fd) {
        char value;

        return fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

/* Looks up a path in one tree. */
static enum lookup_result lookup(int root_fd, const char *path, int *ret_fd) {
        nd_autoclose int fd = pull_tree_open(root_fd, "", O_RDONLY | O_DIRECTORY, false);
        bool opaque = false;

        while (*path && fd >= 0) {
                size_t length = strcspn(path, "/");
                char name[TREE_NAME];
                struct stat st;
                int next;

                if (length >= sizeof name)
                        return HIDDEN;
                memcpy(name, path, length);
                name[length] = '\0';
                path += length + (path[length] == '/');
                if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return opaque || errno != ENOENT ? HIDDEN : MISSING;
                if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
                        return HIDDEN;
                if (*path && !S_ISDIR(st.st_mode))
                        return HIDDEN;
                next = openat(fd, name, (S_ISDIR(st.st_mode) ? O_RDONLY | O_DIRECTORY : O_PATH) | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0)
                        return HIDDEN;
                (void) close(fd);
                fd = next;
                opaque = opaque || (S_ISDIR(st.st_mode) && is_opaque(fd));
        }
        if (fd < 0)
                return HIDDEN;
        *ret_fd = nd_take_fd(fd);
        return FOUND;
}

static struct nd_error *find_in_lower(const struct pull_finalize_lower *lower, const char *path, int *ret_fd,
                                      bool *ret_found) {
        *ret_found = false;
        for (size_t i = 0; i < lower->count; i++) {
                nd_autoclose int root = lower->open(lower->userdata, i);
                enum lookup_result result;

                if (root < 0)
                        return nd_error_new(ND_INTERNAL, -root, "open a layer below");
                result = lookup(root, path, ret_fd);
                if (result == MISSING)
                        continue;
                *ret_found = result == FOUND;
                return nullptr;
        }
        return nullptr;
}

/* Copies the attributes of a lower directory, except overlayfs' own. */
static void copy_attributes(int from, int to) {
        nd_autofree char *value = nd_malloc(ATTRIBUTE_BYTES);
        char names[ATTRIBUTE_NAMES];
        ssize_t length = flistxattr(from, names, sizeof names);

        for (ssize_t at = 0; at < length; at += (ssize_t) strlen(names + at) + 1) {
                ssize_t n;

                if (nd_has_prefix(names + at, "user.overlay.") ||
                    (!nd_has_prefix(names + at, "user.") && !nd_has_prefix(names + at, "system.posix_acl_")))
                        continue;
                n = fgetxattr(from, names + at, value, ATTRIBUTE_BYTES);
                if (n >= 0)
                        (void) nd_sys->fsetxattr(to, names + at, value, (size_t) n, 0);
        }
}

static struct nd_error *finalize_directory(int root_fd, const char *path, const struct pull_finalize_lower *lower) {
        nd_autoclose int below = -EBADF, fd = pull_tree_open(root_fd, path, O_RDONLY | O_DIRECTORY, false);
        struct stat st;
        bool found;

        if (fd < 0)
                return nullptr; /* replaced by a later entry */
        nd_try(find_in_lower(lower, path, &below, &found));
        if (!found || fstat(below, &st) < 0 || !S_ISDIR(st.st_mode))
                return nullptr;
        if (nd_sys->fchown(fd, st.st_uid, st.st_gid) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set the owner of '%s'", path);
        copy_attributes(below, fd);
        if (nd_sys->fchmod(fd, st.st_mode & 07777) < 0 ||
            nd_sys->utimensat(fd, nullptr, (struct timespec[]) {st.st_atim, st.st_mtim}, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set mode and time of '%s'", path);
        return nullptr;
}

/* Returns true when a directory on the path is opaque in the layer itself: nothing below is visible
 * through it. */
static bool is_under_opaque(int root_fd, const char *directory) {
        nd_autofree char *way = nd_strdup(directory);

        while (*way) {
                nd_autoclose int fd = pull_tree_open(root_fd, way, O_RDONLY | O_DIRECTORY, false);
                char *slash = strrchr(way, '/');

                if (fd >= 0 && is_opaque(fd))
                        return true;
                *(slash ? slash : way) = '\0';
        }
        return false;
}

static struct nd_error *finalize_whiteout(int root_fd, const char *path, const struct pull_finalize_lower *lower) {
        nd_autofree char *directory = nd_strdup(path);
        nd_autoclose int parent = -EBADF, below = -EBADF;
        char *slash = strrchr(directory, '/');
        const char *name = slash ? path + (slash - directory) + 1 : path;
        bool found = false;
        struct stat st, dir;

        *(slash ? slash : directory) = '\0';
        parent = pull_tree_open(root_fd, directory, O_RDONLY | O_DIRECTORY, false);
        if (parent < 0 || fstat(parent, &dir) < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISCHR(st.st_mode))
                return nullptr; /* replaced by a later entry */
        if (!is_under_opaque(root_fd, directory))
                nd_try(find_in_lower(lower, path, &below, &found));
        if (found)
                return nullptr;
        if (nd_sys->unlinkat(parent, name, 0) < 0 ||
            nd_sys->utimensat(parent, nullptr, (struct timespec[]) {dir.st_atim, dir.st_mtim}, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "remove the whiteout '%s'", path);
        return nullptr;
}

struct nd_error *pull_finalize(int root_fd, const char *marks, size_t length, const struct pull_finalize_lower *lower) {
        /* Whiteouts first: removing them changes the times of directories, which are set after
         * that. */
        for (int pass = 0; pass < 2; pass++) {
                const char kind = pass == 0 ? MARK_WHITEOUT : MARK_IMPLIED;

                for (size_t at = 0; at < length;) {
                        size_t size = strnlen(marks + at, length - at);
                        nd_autotext struct nd_text clean = {};

                        if (size < 2 || at + size == length)
                                return nd_error_new(ND_INVALID, 0, "invalid list of a layer's marks");
                        if (marks[at] == kind) {
                                nd_try(pull_tree_clean_path(marks + at + 1, &clean));
                                nd_try(kind == MARK_WHITEOUT ? finalize_whiteout(root_fd, nd_text_get(&clean), lower)
                                                             : finalize_directory(root_fd, nd_text_get(&clean), lower));
                        }
                        at += size + 1;
                }
        }
        return nullptr;
}
