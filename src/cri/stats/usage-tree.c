/* SPDX-License-Identifier: Apache-2.0 */
/* usage-tree.c - disk usage of a directory tree that a container controls, see usage.h
 *
 * Theory of operation
 *   Depth first, with one open directory per level. The container chooses the depth, so a level
 *   gives up its resources as the walk descends: its buffer once @BUFFERED levels are below it, and
 *   its descriptor once the descriptors run out. The levels nearest to the top and to the bottom
 *   keep theirs; only those in between are closed.
 *   A closed level is reopened as ".." of the level below, and must be the same inode: the
 *   container may have renamed a directory meanwhile. If it has, the walk continues at the nearest
 *   open level above, and the result is partial. Reading resumes at the entry's d_off, which is
 *   stable on any filesystem that NFS can export.
 * Invariant  no path is followed: every step opens a name in an open directory, never through a
 *            link or onto another mount. A result that misses something is partial. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"
#include "cri/stats/usage.h"
#include "sys/calls.h"

enum {
        BUFFERED = 64,         /* levels with a buffer, for which libc allocates 32 KiB */
        OPEN_MOST = 32768,     /* descriptors; fewer if the limit of this process is low */
        LEVELS_MOST = 2 << 20, /* 64 MiB of stack; deeper trees make the result partial */
        LOOK_AT_CLOCK = 256,   /* entries between two checks of the clock */
        BLOCK = 512,           /* unit of st_blocks */
};

struct level {
        dev_t device; /* each subvolume of btrfs has a device number of its own */
        ino_t inode;
        long at; /* where reading resumes, if it has no buffer */
        int fd;  /* -EBADF = closed, or owned by the buffer */
};

struct walk {
        nd_vector(struct level) levels;
        DIR *buffers[BUFFERED]; /* of level n: n % BUFFERED; the deepest levels only */
        size_t buffered;        /* number of deepest levels with a buffer */
        size_t keep;            /* number of levels at the top, and at the bottom, that stay open */
        uint64_t end;           /* monotonic microseconds */
        uint64_t entries;
        uint64_t bytes;
        double inodes; /* a file with n names counts 1/n for each */
        bool partial;
};

static DIR **buffer_of(struct walk *walk, size_t level) {
        return walk->buffers + level % BUFFERED;
}

static DIR *newest(struct walk *walk) {
        return *buffer_of(walk, walk->levels.count - 1);
}

static void walk_done(struct walk *walk) {
        for (size_t i = 0; i < BUFFERED; i++)
                if (walk->buffers[i])
                        (void) closedir(walk->buffers[i]);
        nd_vector_each (level, &walk->levels)
                nd_close_fd(&level->fd);
        nd_vector_done(&walk->levels);
}

static void count(struct walk *walk, const struct stat *status) {
        uint64_t names = S_ISDIR(status->st_mode) || status->st_nlink == 0 ? 1 : status->st_nlink;

        walk->bytes += (uint64_t) status->st_blocks * BLOCK / names;
        walk->inodes += 1.0 / (double) names;
}

/* The highest buffered level loses its buffer and keeps, for now, its descriptor. */
static void unbuffer_oldest(struct walk *walk) {
        size_t oldest = walk->levels.count - walk->buffered;
        struct level *level = walk->levels.items + oldest;
        DIR **buffer = buffer_of(walk, oldest);

        level->at = telldir(*buffer);
        /* if this fails, the level is reopened as ".." */
        level->fd = fcntl(dirfd(*buffer), F_DUPFD_CLOEXEC, 0);
        (void) closedir(*buffer);
        *buffer = nullptr;
        walk->buffered--;
}

/* Closes the level that is too far from the bottom, unless it is one of the top levels. */
static void close_farthest(struct walk *walk) {
        size_t depth = walk->levels.count;

        if (depth > 2 * walk->keep)
                nd_close_fd(&walk->levels.items[depth - walk->keep - 1].fd);
}

/* Takes the descriptor. */
static bool give_buffer(struct walk *walk, size_t level, int fd) {
        DIR **buffer = buffer_of(walk, level);

        *buffer = fdopendir(fd);
        if (!*buffer) {
                (void) close(fd);
                return false;
        }
        walk->buffered++;
        return true;
}

static int open_directory(int dir_fd, const char *name, uint64_t resolve) {
        struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME, .resolve = resolve};
        int fd = nd_sys->openat2(dir_fd, name, &how, sizeof how);

        if (fd < 0 && errno == EPERM) { /* only the owner may use O_NOATIME */
                how.flags &= ~(uint64_t) O_NOATIME;
                fd = nd_sys->openat2(dir_fd, name, &how, sizeof how);
        }
        return fd;
}

static void push(struct walk *walk, int fd, const struct stat *status) {
        if (walk->levels.count >= LEVELS_MOST) {
                (void) close(fd);
                walk->partial = true;
                return;
        }
        if (walk->buffered == BUFFERED)
                unbuffer_oldest(walk);
        nd_vector_push(&walk->levels, ((struct level) {.device = status->st_dev, .inode = status->st_ino, .fd = -EBADF}));
        if (!give_buffer(walk, walk->levels.count - 1, fd)) {
                walk->levels.count--;
                walk->partial = true;
                return;
        }
        close_farthest(walk);
}

/* Entries that vanish during the walk are ignored; the container did not write what is on other
 * mounts. */
static void enter(struct walk *walk, const char *name) {
        int fd = open_directory(dirfd(newest(walk)), name, RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);

        struct stat opened;

        if (fd >= 0 && fstat(fd, &opened) == 0)
                push(walk, fd, &opened);
        else if (fd >= 0)
                (void) close(fd);
        else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EXDEV)
                walk->partial = true;
}

static void visit(struct walk *walk, const struct dirent *entry) {
        struct stat status;

        if (nd_streq(entry->d_name, ".") || nd_streq(entry->d_name, ".."))
                return;
        if (fstatat(dirfd(newest(walk)), entry->d_name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
                walk->partial = walk->partial || errno != ENOENT;
                return;
        }
        count(walk, &status);
        if (S_ISDIR(status.st_mode))
                enter(walk, entry->d_name);
}

/* Opens the level above as ".." of the deepest one; -EBADF if that is a different directory by
 * now. */
static int open_above(struct walk *walk) {
        const struct level *above = walk->levels.items + walk->levels.count - 2;
        nd_autoclose int fd = open_directory(dirfd(newest(walk)), "..", RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0 || status.st_ino != above->inode || status.st_dev != above->device)
                return -EBADF;
        return nd_take_fd(fd);
}

static void drop_newest(struct walk *walk) {
        DIR **buffer = buffer_of(walk, walk->levels.count - 1);

        if (*buffer) {
                (void) closedir(*buffer);
                *buffer = nullptr;
                walk->buffered--;
        }
        nd_close_fd(&walk->levels.items[walk->levels.count - 1].fd);
        walk->levels.count--;
}

/* The deepest level is complete: returns to the one above, or to the nearest that can be
 * reached. */
static void leave(struct walk *walk) {
        bool reopen = walk->levels.count >= 2 && walk->buffered == 1;
        int above = -EBADF;

        if (reopen) {
                above = nd_take_fd(walk->levels.items[walk->levels.count - 2].fd);
                if (above < 0)
                        above = open_above(walk);
        }
        drop_newest(walk);
        /* it was moved away: up to a level that is open */
        while (reopen && above < 0 && walk->levels.count > 0) {
                walk->partial = true;
                above = nd_take_fd(walk->levels.items[walk->levels.count - 1].fd);
                if (above < 0)
                        walk->levels.count--;
        }
        if (above < 0)
                return;
        if (give_buffer(walk, walk->levels.count - 1, above)) {
                seekdir(newest(walk), walk->levels.items[walk->levels.count - 1].at);
        } else { /* out of memory: keep what was counted */
                walk->partial = true;
                walk->levels.count = 0;
        }
}

static size_t levels_to_keep(void) {
        struct rlimit limit = {};
        size_t most = OPEN_MOST;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < most)
                most = limit.rlim_cur / 2;
        return most < 4 * BUFFERED ? 2 * BUFFERED : most / 2;
}

static void look_at_filesystem(int fd, struct cri_tree_usage *ret) {
        struct statvfs fs;

        if (fstatvfs(fd, &fs) < 0)
                return;
        ret->filesystem_bytes = (uint64_t) fs.f_blocks * fs.f_frsize;
        ret->filesystem_inodes = fs.f_files;
        ret->free_inodes = fs.f_ffree;
}

static void walk_all(struct walk *walk) {
        while (walk->levels.count > 0) {
                const struct dirent *entry;

                errno = 0;
                entry = readdir(newest(walk));
                if (entry) {
                        visit(walk, entry);
                } else {
                        walk->partial = walk->partial || (errno != 0 && errno != ENOENT);
                        leave(walk);
                }
                if (++walk->entries % LOOK_AT_CLOCK == 0 && nd_clock_us() > walk->end) {
                        walk->partial = true;
                        return;
                }
        }
}

struct nd_error *cri_usage_of_tree(int dir_fd, const char *path, uint64_t deadline_us, struct cri_tree_usage *ret) {
        nd_cleanup(walk_done) struct walk walk = {.end = nd_clock_us() + deadline_us, .keep = levels_to_keep()};
        nd_autoclose int top = openat(dir_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct cri_tree_usage found = {};
        struct stat status;
        int fd;

        if (top < 0 || fstat(top, &status) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat '%s'", path);
        count(&walk, &status);
        if (S_ISDIR(status.st_mode)) {
                fd = open_directory(top, ".", 0);
                if (fd < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
                push(&walk, fd, &status);
        }
        walk_all(&walk);
        found = (struct cri_tree_usage) {.at = nd_clock_wall_ns(),
                                         .bytes = walk.bytes,
                                         .inodes = (uint64_t) (walk.inodes + 0.5),
                                         .partial = walk.partial};
        look_at_filesystem(top, &found);
        *ret = found;
        return nullptr;
}
