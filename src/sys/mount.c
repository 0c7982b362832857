/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/mount.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/file.h"
#include "sys/own-userns.h"

enum {
        TABLE_CEILING = 64 << 20, /* bytes of the mount table */
};

/* Names the mount: an open file has a path only in /proc, which a jail may not have. */
static struct nd_error *clone_error(int dir_fd, const char *path, int number) {
        nd_autofree char *link = nd_format("/proc/self/fd/%d", dir_fd);
        char name[PATH_MAX] = "";

        if (path[0] != '\0')
                return nd_error_new(nd_error_code_of(number), number, "clone the mount at '%s'", path);
        if (readlink(link, name, sizeof name - 1) < 0)
                return nd_error_new(nd_error_code_of(number), number, "clone the mount of an open file");
        return nd_error_new(nd_error_code_of(number), number, "clone the mount at '%s'", name);
}

struct nd_error *nd_mount_clone(int dir_fd, const char *path, bool recursive, int *ret_fd) {
        unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | (recursive ? AT_RECURSIVE : 0u);
        int fd = nd_sys->open_tree(dir_fd, path, flags | (path[0] == '\0' ? AT_EMPTY_PATH : 0u));

        if (fd < 0)
                return clone_error(dir_fd, path, errno);
        *ret_fd = fd;
        return nullptr;
}

struct nd_error *nd_mount_idmap(int tree_fd, int userns_fd, bool recursive) {
        struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t) userns_fd};
        int number;

        if (nd_sys->mount_setattr(tree_fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0u), &attributes,
                                  sizeof attributes) == 0)
                return nullptr;
        number = errno;
        if (number == EINVAL)
                return nd_error_new(ND_UNIMPLEMENTED, EINVAL, "idmap a mount of %s, which does not support it here",
                                    nd_mount_fs_name(tree_fd));
        if (number == EPERM && nd_own_userns_in_node())
                return nd_error_new(ND_DENIED, EPERM,
                                    "idmap a mount of %s, which the host mounted: a rootless node can idmap only filesystems "
                                    "that were mounted in it",
                                    nd_mount_fs_name(tree_fd));
        return nd_error_new(nd_error_code_of(number), number, "idmap a mount of %s", nd_mount_fs_name(tree_fd));
}

struct nd_error *nd_mount_set(int tree_fd, uint64_t attributes, bool recursive) {
        struct mount_attr set = {.attr_set = attributes};

        if (nd_sys->mount_setattr(tree_fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0u), &set, sizeof set) == 0)
                return nullptr;
        return nd_error_new(nd_error_code_of(errno), errno, "set the flags of a mount");
}

struct nd_error *nd_mount_propagation(int tree_fd, uint64_t propagation, bool recursive) {
        struct mount_attr set = {.propagation = propagation};

        if (nd_sys->mount_setattr(tree_fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0u), &set, sizeof set) == 0)
                return nullptr;
        return nd_error_new(nd_error_code_of(errno), errno, "set the propagation of a mount");
}

struct nd_error *nd_mount_attach(int tree_fd, int dir_fd, const char *path) {
        unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (path[0] == '\0' ? MOVE_MOUNT_T_EMPTY_PATH : 0u);

        if (nd_sys->move_mount(tree_fd, "", dir_fd, path, flags) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "attach a mount at '%s'", path);
        return nullptr;
}

struct nd_error *nd_mount_detach(const char *path) {
        while (nd_sys->umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
                ;
        if (errno == EINVAL || errno == ENOENT)
                return nullptr;
        return nd_error_new(nd_error_code_of(errno), errno, "unmount '%s'", path);
}

/* The kernel stores its own message about a failed configuration in the context; it is more precise
 * than the errno. */
static struct nd_error *fs_error(int fd, const char *type, const char *what) {
        int saved = errno;
        char words[256];
        ssize_t n = read(fd, words, sizeof words - 1);

        if (n <= 2)
                return nd_error_new(nd_error_code_of(saved), saved, "%s: %s", type, what);
        words[n] = '\0';
        words[strcspn(words, "\n")] = '\0';
        return nd_error_new(nd_error_code_of(saved), saved, "%s: %s (%s)", type, what, words + 2);
}

struct nd_error *nd_mount_fs_make(const char *type, const struct nd_mount_fs_option *options, size_t count,
                                  unsigned attributes, int *ret_fd) {
        nd_autoclose int fd = nd_sys->fsopen(type, FSOPEN_CLOEXEC);
        int tree;

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open filesystem type %s", type);
        for (size_t i = 0; i < count; i++) {
                unsigned command = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

                if (nd_sys->fsconfig(fd, command, options[i].key, options[i].value, 0) < 0)
                        return fs_error(fd, type, options[i].key);
        }
        if (nd_sys->fsconfig(fd, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
                return fs_error(fd, type, "create");
        tree = nd_sys->fsmount(fd, FSMOUNT_CLOEXEC, attributes);
        if (tree < 0)
                return fs_error(fd, type, "mount");
        *ret_fd = tree;
        return nullptr;
}

struct nd_error *nd_mount_namespace_empty(const char *directory) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_fs_make("tmpfs", (const struct nd_mount_fs_option[]) {{"mode", "0700"}}, 1,
                                MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &tree));
        nd_try(nd_mount_attach(tree, AT_FDCWD, directory));
        if (chdir(directory) < 0 || nd_sys->pivot_root(".", ".") < 0 || nd_sys->umount2(".", MNT_DETACH) < 0)
                return nd_error_new(ND_INTERNAL, errno, "make '%s' the only mount in a mount namespace", directory);
        return nullptr;
}

struct nd_error *nd_mount_namespace_private(void) {
        if (nd_sys->unshare(CLONE_NEWNS) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create mount namespace");
        if (nd_sys->mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "make all mounts private");
        return nullptr;
}

struct nd_error *nd_mount_table_line(int fd, char **ret) {
        nd_autofree char *table = nullptr, *start = nullptr;
        const char *line;
        struct statx st;

        if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "find the mount");
        nd_try(nd_file_read_kernel("/proc/self/mountinfo", TABLE_CEILING, &table));
        start = nd_format("%llu ", (unsigned long long) st.stx_mnt_id);
        for (line = table; *line && !nd_has_prefix(line, start); line += *line == '\n')
                line += strcspn(line, "\n");
        *ret = nd_strndup(line, strcspn(line, "\n"));
        return nullptr;
}

struct nd_error *nd_mount_fs_type(int fd, char **ret) {
        nd_autofree char *line = nullptr;
        const char *type;

        nd_try(nd_mount_table_line(fd, &line));
        type = strstr(line ?: "", " - "); /* ends the optional fields */
        *ret = type ? nd_strndup(type + 3, strcspn(type + 3, " ")) : nd_strdup("unknown");
        return nullptr;
}

const char *nd_mount_fs_name(int fd) {
        static const struct {
                unsigned long magic;
                const char *name;
        } known[] = {
                {EXT4_SUPER_MAGIC, "ext4"},
                {TMPFS_MAGIC, "tmpfs"},
                {XFS_SUPER_MAGIC, "xfs"},
                {BTRFS_SUPER_MAGIC, "btrfs"},
                {OVERLAYFS_SUPER_MAGIC, "overlay"},
                {NFS_SUPER_MAGIC, "nfs"},
                {FUSE_SUPER_MAGIC, "fuse"},
                {F2FS_SUPER_MAGIC, "f2fs"},
                {EROFS_SUPER_MAGIC_V1, "erofs"},
                {SQUASHFS_MAGIC, "squashfs"},
                {RAMFS_MAGIC, "ramfs"},
                {PROC_SUPER_MAGIC, "proc"},
                {SYSFS_MAGIC, "sysfs"},
                {CGROUP2_SUPER_MAGIC, "cgroup2"},
                {V9FS_MAGIC, "9p"},
                {SMB2_SUPER_MAGIC, "cifs"},
                {CEPH_SUPER_MAGIC, "ceph"},
                {0x2fc12fc1, "zfs"},
                {HOSTFS_SUPER_MAGIC, "hostfs"},
                {BCACHEFS_SUPER_MAGIC, "bcachefs"},
        };
        static char unknown[32];
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return "an unknown filesystem";
        for (size_t i = 0; i < nd_count_of(known); i++)
                if (known[i].magic == (unsigned long) fs.f_type)
                        return known[i].name;
        (void) snprintf(unknown, sizeof unknown, "filesystem type 0x%lx", (unsigned long) fs.f_type);
        return unknown;
}
