/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - see unpack.h
 *
 * Theory of operation
 *   Entries arrive in the archive's order through the tar reader's sink. unpack_entry() handles
 *   them by the table in unpack.h. A file stays open (@file) until its data is complete, and gets
 *   owner, attributes, mode and time in unpack_end(): in that order, because a write clears
 *   capabilities and a chown clears setuid. Directories get their times in pull_unpack_finish(),
 *   when nothing more is created in them.
 *   Nothing is synced here: a layer becomes visible only after one syncfs() for the whole pull;
 *   after a crash before that the staging directory is discarded.
 * Invariant  every system call names a place as (directory descriptor, last component) and does not
 * follow the component. */
#include "pull/unpack/unpack.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "sys/calls.h"
#include "sys/dir.h"
#include "sys/own-userns.h"

enum {
        DISK_BLOCK = 4096,
        DIRECTORIES = 1000000,
        REMOVE_DEPTH = 512,
};

struct directory_time {
        char *path; /* as spelled in the archive */
        ino_t inode;
        struct timespec mtime;
};

/* Metadata of an entry's inode. */
struct metadata {
        uid_t uid;
        gid_t gid;
        mode_t mode;
        struct timespec mtime;
};

struct pull_unpack {
        struct pull_tree tree;
        const struct nd_own_userns *squash; /* whose missing owners become root; nullptr = none */
        bool lowest;
        bool default_acl; /* a directory has a default ACL, which changes the mode of new files */
        int file;         /* the file being written; -EBADF = data is dropped */
        struct metadata file_metadata;
        uint64_t file_size;
        char *file_name;
        const struct pull_tar_xattr *file_xattrs; /* owned by the tar reader, until end() */
        size_t file_xattr_count;
        uint64_t entries;
        uint64_t blocks, inodes;
        struct nd_layer_owner owner;
        nd_vector(struct directory_time) times;
};

struct pull_unpack *pull_unpack_new(int root_fd, bool lowest) {
        struct pull_unpack *u = nd_new(struct pull_unpack);

        pull_tree_init(root_fd, &u->tree);
        u->lowest = lowest;
        u->file = -EBADF;
        u->blocks = 1; /* the root directory */
        u->inodes = 1;
        return u;
}

void pull_unpack_squash_owners(struct pull_unpack *u, const struct nd_own_userns *node) {
        u->squash = node;
}

void pull_unpack_free(struct pull_unpack *u) {
        if (!u)
                return;
        pull_tree_done(&u->tree);
        nd_close_fd(&u->file);
        free(u->file_name);
        nd_vector_each (time, &u->times) {
                free(time->path);
        }
        nd_vector_done(&u->times);
        free(u);
}

static struct nd_error *failed(const char *what, const char *path) {
        return nd_error_new(nd_error_code_of(errno), errno, "%s '%s'", what, path);
}

static uint64_t blocks_of(uint64_t size) {
        return size / DISK_BLOCK + (size % DISK_BLOCK > 0);
}

static bool is_whiteout(const struct stat *st) {
        return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static void count_removed(struct pull_unpack *u, const struct stat *st) {
        if (is_whiteout(st) || (S_ISREG(st->st_mode) && st->st_nlink > 1))
                return;
        u->inodes -= u->inodes > 0;
        if (S_ISREG(st->st_mode) && u->blocks >= blocks_of((uint64_t) st->st_size))
                u->blocks -= blocks_of((uint64_t) st->st_size);
        if (S_ISDIR(st->st_mode) && u->blocks > 0)
                u->blocks--;
}

/* Removes an existing entry, a directory recursively: an archive may replace its own entries. */
static struct nd_error *remove_existing(struct pull_unpack *u, int dir_fd, const char *name, unsigned depth,
                                        struct stat *ret_removed) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return failed("look at", name);
        if (S_ISDIR(st.st_mode)) {
                nd_cleanup(nd_dir_close) DIR *dir = nullptr;
                const struct dirent *entry;
                int fd = nd_sys->openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

                if (fd < 0 || depth == REMOVE_DEPTH)
                        return failed("open directory", name);
                dir = fdopendir(fd);
                if (!dir)
                        return failed("read directory", name);
                while ((entry = readdir(dir)))
                        if (!nd_streq(entry->d_name, ".") && !nd_streq(entry->d_name, ".."))
                                nd_try(remove_existing(u, fd, entry->d_name, depth + 1, nullptr));
                pull_tree_unmark(&u->tree, st.st_ino);
        }
        if (nd_sys->unlinkat(dir_fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
                return failed("replace", name);
        count_removed(u, &st);
        if (ret_removed)
                *ret_removed = st;
        return nullptr;
}

/* Removes an existing entry to replace it. The cached parent may be below it, so it is looked up
 * again. */
static struct nd_error *replace_existing(struct pull_unpack *u, const char *path, int *dir_fd, char *name,
                                         bool *ret_whiteout) {
        struct stat removed;

        nd_try(remove_existing(u, *dir_fd, name, 0, &removed));
        if (ret_whiteout)
                *ret_whiteout = is_whiteout(&removed);
        pull_tree_invalidate(&u->tree);
        return pull_tree_find(&u->tree, path, true, dir_fd, name, nullptr);
}

static bool xattr_wanted(const struct pull_tar_xattr *xattr) {
        /* little endian 0x020000xx without its flag */
        static const unsigned char version2[] = {0x00, 0x00, 0x02};

        if (nd_has_prefix(xattr->name, "user."))
                return !nd_has_prefix(xattr->name, "user.overlay.");
        if (nd_streq(xattr->name, "security.capability"))
                return xattr->length == 20 && memcmp(xattr->value + 1, version2, sizeof version2) == 0;
        return nd_streq(xattr->name, "system.posix_acl_access") || nd_streq(xattr->name, "system.posix_acl_default");
}

static struct nd_error *set_xattrs(struct pull_unpack *u, int fd, const char *name, const struct pull_tar_xattr *xattrs,
                                   size_t count) {
        for (size_t i = 0; i < count; i++) {
                if (!xattr_wanted(&xattrs[i]))
                        continue;
                if (nd_streq(xattrs[i].name, "system.posix_acl_default"))
                        u->default_acl = true;
                if (nd_sys->fsetxattr(fd, xattrs[i].name, xattrs[i].value, xattrs[i].length, 0) < 0 && errno != ENOTSUP &&
                    !(u->squash && errno == EINVAL && nd_has_prefix(xattrs[i].name, "system.posix_acl_")))
                        return nd_error_new(nd_error_code_of(errno), errno, "set the extended attribute %s of '%s'",
                                            xattrs[i].name, name);
        }
        return nullptr;
}

static void times_of(const struct metadata *m, struct timespec ret[static 2]) {
        ret[0] = ret[1] = m->mtime;
}

/* A rootless node has only some IDs; for others the kernel returns EINVAL. */
static struct nd_error *owner_refused(const char *name, const struct metadata *m) {
        int number = errno;

        return nd_error_new(nd_error_code_of(number), number, "set the owner of '%s' to %u:%u%s", name, m->uid, m->gid,
                            number == EINVAL ? ", not both of which are user and group IDs of this node (see /etc/subuid)"
                                             : "");
}

/* Sets owner, attributes, mode and optionally time through an open descriptor. */
static struct nd_error *set_metadata(struct pull_unpack *u, int fd, const char *name, const struct metadata *m,
                                     bool mode_is_set, const struct pull_tar_xattr *xattrs, size_t count, bool with_time) {
        struct timespec times[2];

        if (nd_sys->fchown(fd, m->uid, m->gid) < 0)
                return owner_refused(name, m);
        nd_try(set_xattrs(u, fd, name, xattrs, count));
        if ((!mode_is_set || (m->mode & 07000) || u->default_acl) && nd_sys->fchmod(fd, m->mode) < 0)
                return failed("set the mode of", name);
        times_of(m, times);
        if (with_time && nd_sys->utimensat(fd, nullptr, times, 0) < 0)
                return failed("set the time of", name);
        return nullptr;
}

/* The same by name, for entries that cannot be opened: links and FIFOs. */
static struct nd_error *set_metadata_at(int dir_fd, const char *name, const struct metadata *m, bool with_mode) {
        struct timespec times[2];

        if (nd_sys->fchownat(dir_fd, name, m->uid, m->gid, AT_SYMLINK_NOFOLLOW) < 0)
                return owner_refused(name, m);
        if (with_mode && nd_sys->fchmodat(dir_fd, name, m->mode, 0) < 0)
                return failed("set the mode of", name);
        times_of(m, times);
        if (nd_sys->utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
                return failed("set the time of", name);
        return nullptr;
}

/* A set-user-ID program of a user that does not exist here must not become root's. */
static void squash_owner(const struct nd_own_userns *node, struct metadata *m) {
        bool uid = nd_own_userns_has_uid(node, m->uid), gid = nd_own_userns_has_gid(node, m->gid);

        if (!uid || !gid)
                m->mode &= ~(mode_t) (S_ISUID | S_ISGID);
        m->uid = uid ? m->uid : 0;
        m->gid = gid ? m->gid : 0;
}

static struct metadata metadata_of(const struct pull_unpack *u, const struct pull_tar_entry *e) {
        struct metadata m = {
                .uid = e->uid,
                .gid = e->gid,
                .mode = e->mode,
                .mtime = {.tv_sec = e->mtime, .tv_nsec = (long) e->mtime_ns},
        };

        if (u->squash)
                squash_owner(u->squash, &m);
        return m;
}

static struct nd_error *make_file(struct pull_unpack *u, const struct pull_tar_entry *e, int dir_fd, char *name) {
        enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
        int fd = nd_sys->openat(dir_fd, name, FLAGS, e->mode & 0777);

        if (fd < 0 && errno == EEXIST) {
                nd_try(replace_existing(u, e->path, &dir_fd, name, nullptr));
                fd = nd_sys->openat(dir_fd, name, FLAGS, e->mode & 0777);
        }
        if (fd < 0)
                return failed("create", name);
        u->file = fd;
        u->file_metadata = metadata_of(u, e);
        u->file_size = e->size;
        u->file_name = nd_strdup(name);
        u->file_xattrs = e->xattrs;
        u->file_xattr_count = e->xattr_count;
        return nullptr;
}

static struct nd_error *make_opaque(int fd, const char *name) {
        if (nd_sys->fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) < 0)
                return nd_error_new(
                        nd_error_code_of(errno), errno,
                        "mark directory '%s' as opaque (the image store's filesystem must have user extended attributes)",
                        name);
        return nullptr;
}

static struct nd_error *make_directory(struct pull_unpack *u, const struct pull_tar_entry *e, int dir_fd, char *name) {
        struct metadata m = metadata_of(u, e);
        nd_autoclose int fd = -EBADF;
        bool made = nd_sys->mkdirat(dir_fd, name, 0700) == 0, whiteout = false;
        struct stat st;

        if (!made) {
                if (errno != EEXIST || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return failed("make directory", name);
                if (!S_ISDIR(st.st_mode)) {
                        nd_try(replace_existing(u, e->path, &dir_fd, name, &whiteout));
                        if (nd_sys->mkdirat(dir_fd, name, 0700) < 0)
                                return failed("make directory", name);
                        made = true;
                }
        }
        fd = nd_sys->openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0 || fstat(fd, &st) < 0)
                return failed("open directory", name);
        if (whiteout)
                nd_try(make_opaque(fd, name));
        u->inodes += made;
        u->blocks += made;
        pull_tree_unmark(&u->tree, st.st_ino);
        nd_try(set_metadata(u, fd, name, &m, false, e->xattrs, e->xattr_count, false));
        if (u->times.count == DIRECTORIES)
                return nd_error_new(ND_EXHAUSTED, 0, "the layer has more than %d directories", DIRECTORIES);
        nd_vector_push(&u->times,
                       ((struct directory_time) {.path = nd_strdup(e->path), .inode = st.st_ino, .mtime = m.mtime}));
        return nullptr;
}

static struct nd_error *make_symlink(struct pull_unpack *u, const struct pull_tar_entry *e, int dir_fd, char *name) {
        struct metadata m = metadata_of(u, e);

        if (!*e->link)
                return nd_error_new(ND_INVALID, 0, "the layer has a symbolic link without a target: '%s'", name);
        if (nd_sys->symlinkat(e->link, dir_fd, name) < 0) {
                if (errno != EEXIST)
                        return failed("make symbolic link", name);
                nd_try(replace_existing(u, e->path, &dir_fd, name, nullptr));
                if (nd_sys->symlinkat(e->link, dir_fd, name) < 0)
                        return failed("make symbolic link", name);
        }
        u->inodes++;
        return set_metadata_at(dir_fd, name, &m, false);
}

/* The link's own header may differ from the file's; the last one wins, as everywhere in an
 * archive. */
static struct nd_error *set_link_metadata(struct pull_unpack *u, const struct pull_tar_entry *e, int dir_fd, const char *name,
                                          const struct stat *target) {
        struct metadata m = metadata_of(u, e);
        nd_autoclose int fd = -EBADF;
        struct timespec times[2];

        if (!S_ISREG(target->st_mode))
                return set_metadata_at(dir_fd, name, &m, !S_ISLNK(target->st_mode));
        fd = nd_sys->openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0)
                return failed("open", name);
        /* chown() would clear the file's capabilities, even with the same owner. */
        if (target->st_uid != m.uid || target->st_gid != m.gid)
                return set_metadata(u, fd, name, &m, false, e->xattrs, e->xattr_count, true);
        nd_try(set_xattrs(u, fd, name, e->xattrs, e->xattr_count));
        if ((target->st_mode & 07777) != m.mode && nd_sys->fchmod(fd, m.mode) < 0)
                return failed("set the mode of", name);
        times_of(&m, times);
        if (nd_sys->utimensat(fd, nullptr, times, 0) < 0)
                return failed("set the time of", name);
        return nullptr;
}

static struct nd_error *make_hardlink(struct pull_unpack *u, const struct pull_tar_entry *e) {
        nd_autoclose int target_dir = -EBADF;
        char name[TREE_NAME], target[TREE_NAME];
        int dir_fd = -EBADF;
        struct stat st, old;

        nd_try(nd_error_wrap(pull_tree_find(&u->tree, e->link, false, &dir_fd, target, nullptr), "target of a hard link"));
        target_dir = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
        if (target_dir < 0)
                return failed("duplicate the directory descriptor of", target);
        if (!*target || fstatat(target_dir, target, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return nd_error_new(ND_INVALID, ENOENT, "the layer has a hard link to '%.200s', which it does not contain",
                                    e->link);
        if (S_ISDIR(st.st_mode) || is_whiteout(&st))
                return nd_error_new(ND_INVALID, EPERM, "the layer has a hard link to '%.200s', a directory or a whiteout",
                                    e->link);

        nd_try(pull_tree_find(&u->tree, e->path, true, &dir_fd, name, nullptr));
        if (fstatat(dir_fd, name, &old, AT_SYMLINK_NOFOLLOW) == 0) {
                if (old.st_ino == st.st_ino)
                        /* another link with the same name */
                        return set_link_metadata(u, e, dir_fd, name, &st);
                nd_try(replace_existing(u, e->path, &dir_fd, name, nullptr));
        }
        if (nd_sys->linkat(target_dir, target, dir_fd, name, 0) < 0)
                return failed("make hard link", name);
        return set_link_metadata(u, e, dir_fd, name, &st);
}

static struct nd_error *make_fifo(struct pull_unpack *u, const struct pull_tar_entry *e, int dir_fd, char *name) {
        struct metadata m = metadata_of(u, e);

        if (nd_sys->mknodat(dir_fd, name, S_IFIFO | 0600, 0) < 0) {
                if (errno != EEXIST)
                        return failed("make FIFO", name);
                nd_try(replace_existing(u, e->path, &dir_fd, name, nullptr));
                if (nd_sys->mknodat(dir_fd, name, S_IFIFO | 0600, 0) < 0)
                        return failed("make FIFO", name);
        }
        u->inodes++;
        return set_metadata_at(dir_fd, name, &m, true);
}

/* Hides a name of the lower layers. path is the place as spelled in the archive, with the hidden
 * name. */
static struct nd_error *write_whiteout(struct pull_unpack *u, const char *path) {
        nd_autofree char *directory = nullptr;
        char name[TREE_NAME];
        int dir_fd;
        struct stat st;

        nd_try(pull_tree_find(&u->tree, path, true, &dir_fd, name, &directory));
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                /* The layer's own entry hides the name already, unless it is a directory, which
                 * would be merged. */
                nd_autoclose int fd = -EBADF;

                if (!S_ISDIR(st.st_mode) || u->lowest)
                        return nullptr;
                fd = nd_sys->openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
                return fd < 0 ? failed("open directory", name) : make_opaque(fd, name);
        }
        if (u->lowest)
                return nullptr;
        if (nd_sys->mknodat(dir_fd, name, S_IFCHR | 0600, makedev(0, 0)) < 0)
                return failed("make whiteout", name);
        return pull_tree_mark(&u->tree, MARK_WHITEOUT, 0, nd_format("%s%s%s", directory, *directory ? "/" : "", name));
}

static struct nd_error *skip_device(struct pull_unpack *u, const struct pull_tar_entry *e, int dir_fd, const char *name) {
        struct stat st;

        if (e->kind == TAR_CHARACTER && e->major == 0 && e->minor == 0)
                return nd_error_new(ND_INVALID, 0,
                                    "the layer has a character device 0:0 at '%.200s', which would be a whiteout", e->path);
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                char copy[TREE_NAME];

                memcpy(copy, name, sizeof copy);
                nd_try(replace_existing(u, e->path, &dir_fd, copy, nullptr));
        }
        return write_whiteout(u, e->path);
}

static bool is_aufs_metadata(const char *path) {
        const char *at = strstr(path, ".wh..wh.");

        return at && (at == path || at[-1] == '/');
}

/* Handles a reserved whiteout name; clean is the normalized path. */
static struct nd_error *unpack_whiteout(struct pull_unpack *u, const char *clean, const char *name) {
        nd_autofree char *hidden = nullptr;
        const char *target = name + strlen(".wh.");

        if (nd_streq(name, ".wh..wh..opq")) {
                char last[TREE_NAME];
                int dir_fd;

                nd_try(pull_tree_find(&u->tree, clean, true, &dir_fd, last, nullptr));
                return u->lowest ? nullptr : make_opaque(dir_fd, clean);
        }
        if (nd_has_prefix(name, ".wh..wh."))
                return nullptr;
        if (!*target || nd_streq(target, ".") || nd_streq(target, ".."))
                return nd_error_new(ND_INVALID, 0, "the layer has a whiteout without a name: '%.200s'", clean);
        hidden = nd_format("%.*s%s", (int) (name - clean), clean, target);
        return write_whiteout(u, hidden);
}

static struct nd_error *make_entry(struct pull_unpack *u, const struct pull_tar_entry *e) {
        char name[TREE_NAME];
        int dir_fd;

        if (e->kind == TAR_HARDLINK)
                return make_hardlink(u, e);
        nd_try(pull_tree_find(&u->tree, e->path, true, &dir_fd, name, nullptr));
        switch (e->kind) {
        case TAR_FILE:
                return make_file(u, e, dir_fd, name);
        case TAR_DIRECTORY:
                return make_directory(u, e, dir_fd, name);
        case TAR_SYMLINK:
                return make_symlink(u, e, dir_fd, name);
        case TAR_FIFO:
                return make_fifo(u, e, dir_fd, name);
        default:
                return skip_device(u, e, dir_fd, name);
        }
}

static struct nd_error *unpack_entry(void *userdata, const struct pull_tar_entry *e) {
        struct pull_unpack *u = userdata;
        nd_autotext struct nd_text clean = {};
        const char *slash, *name, *reserved;

        if (++u->entries > UNPACK_ENTRIES)
                return nd_error_new(ND_EXHAUSTED, 0, "the layer has more than %d entries", UNPACK_ENTRIES);
        nd_try(pull_tree_clean_path(e->path, &clean));
        if (clean.length == 0)
                return nullptr;
        slash = strrchr(clean.bytes, '/');
        name = slash ? slash + 1 : clean.bytes;
        if (is_aufs_metadata(clean.bytes) && !nd_streq(name, ".wh..wh..opq"))
                return nullptr;
        reserved = nd_has_prefix(clean.bytes, ".wh.") ? clean.bytes : strstr(clean.bytes, "/.wh.");
        if (reserved && reserved < name - 1)
                return nd_error_new(ND_INVALID, 0, "the layer has a directory with a whiteout's name: '%.200s'", clean.bytes);
        if (nd_has_prefix(name, ".wh."))
                return unpack_whiteout(u, clean.bytes, name);
        if (e->kind != TAR_CHARACTER && e->kind != TAR_BLOCK) {
                struct metadata m = metadata_of(u, e);

                nd_layer_owner_consider(&u->owner, m.uid, m.gid, clean.bytes);
        }
        return nd_error_wrap(make_entry(u, e), "'%.200s'", clean.bytes);
}

static struct nd_error *unpack_data(void *userdata, const char *bytes, size_t length) {
        struct pull_unpack *u = userdata;

        while (u->file >= 0 && length > 0) {
                ssize_t n = nd_sys->write(u->file, bytes, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return failed("write", u->file_name);
                bytes += n;
                length -= (size_t) n;
        }
        return nullptr;
}

static struct nd_error *unpack_end(void *userdata) {
        struct pull_unpack *u = userdata;
        nd_autofree char *name = nd_take_ptr(u->file_name);
        nd_autoclose int fd = nd_take_fd(u->file);

        if (fd < 0)
                return nullptr;
        u->inodes++;
        u->blocks += blocks_of(u->file_size);
        return set_metadata(u, fd, name, &u->file_metadata, true, u->file_xattrs, u->file_xattr_count, true);
}

struct pull_tar_sink pull_unpack_sink(struct pull_unpack *u) {
        return (struct pull_tar_sink) {.entry = unpack_entry, .data = unpack_data, .end = unpack_end, .userdata = u};
}

/* Sets the times of directories at the end, since creating an entry changes the time of its
 * directory. Skips directories that were replaced meanwhile. */
static struct nd_error *set_directory_times(struct pull_unpack *u) {
        nd_vector_each (time, &u->times) {
                nd_autoclose int fd = pull_tree_open(u->tree.root, time->path, O_RDONLY | O_DIRECTORY, true);
                struct timespec times[2] = {time->mtime, time->mtime};
                struct stat st;

                if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != time->inode)
                        continue;
                if (nd_sys->utimensat(fd, nullptr, times, 0) < 0)
                        return failed("set the time of", time->path);
        }
        return nullptr;
}

struct nd_error *pull_unpack_finish(struct pull_unpack *u, struct nd_text *ret_marks, struct pull_unpack_result *ret) {
        nd_try(set_directory_times(u));
        nd_vector_each (mark, &u->tree.marks) {
                char kind = (char) mark->kind;

                if (!mark->path)
                        continue;
                nd_text_append(ret_marks, &kind, 1);
                nd_text_append(ret_marks, mark->path, strlen(mark->path) + 1);
        }
        if (ret_marks->overflow)
                return nd_error_new(
                        ND_EXHAUSTED, 0,
                        "the total length of the paths of the layer's whiteouts and implied directories exceeds the limit");
        ret->inodes = u->inodes + u->tree.made;
        ret->size = (u->blocks + u->tree.made) * DISK_BLOCK;
        ret->owner = u->owner;
        ret->owner.known = true;
        return nullptr;
}
