/* SPDX-License-Identifier: Apache-2.0 */
/* A detached copy of a directory's mount can be a process's root, and nothing leads out of it.
 *
 * What the kernel does: in a mount namespace that belongs to its user namespace, root of that user
 * namespace may copy the mount of one directory without attaching it anywhere (open_tree), make the
 * copy read only, and chroot() into it. ".." of its root is the root itself, for the copy's
 * descriptor as for paths. A hard link from one copy to another is refused though both are of one
 * filesystem, and so is any write to a read-only copy. The copy is gone with its last user, and the
 * directory can be renamed while it exists.
 *
 * Why nodens needs it: each worker of nodens-unpack has the tree of its own layer as its root, and
 * layers below as read-only copies. */
#include "evidence.h"
#include "sys/mount.h"

static int work(void *argument) {
        const int *userns = argument;
        struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
        struct stat root, parent;
        int tree, below;

        enter_userns(*userns);
        step(unshare(CLONE_NEWNS) == 0);
        done(nd_mount_clone(AT_FDCWD, "own", false, &tree));
        done(nd_mount_clone(AT_FDCWD, "below", false, &below));
        expect(mount_setattr(below, "", AT_EMPTY_PATH, &read_only, sizeof read_only) == 0, "a copy can be made read only");
        expect(fchdir(tree) == 0 && chroot(".") == 0, "a copy can be the root");
        step(fstat(tree, &root) == 0 && fstatat(tree, "..", &parent, 0) == 0);
        expect(root.st_ino == parent.st_ino, "the parent of its root is the root");
        expect(openat(below, "../other", O_RDONLY) < 0 && errno == ENOENT, "nothing beside a copy can be named by it");
        expect(open("/../other", O_RDONLY) < 0 && errno == ENOENT, "nor by the root");
        expect(mkdirat(tree, "made", 0700) == 0, "the own copy can be written");
        expect(openat(below, "file", O_RDONLY) >= 0, "the read-only one can be read");
        expect(openat(below, "file", O_WRONLY) < 0 && errno == EROFS, "and not written");
        expect(linkat(below, "file", tree, "linked", 0) < 0 && errno == EXDEV, "a hard link between copies is refused");
        return 0;
}

int main(void) {
        struct nd_userns_map map = {.inside = 0, .outside = 0, .count = UINT32_MAX};
        struct nd_userns_plan plan = {.uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1};
        char *base = scratch_directory("/var/tmp"), *command = nd_format("rm -rf '%s'", base);
        int userns = -EBADF;

        need_root();
        done(nd_mount_namespace_private());
        done(nd_userns_make(&plan, &userns));
        step(chdir(base) == 0 && mkdir("own", 0755) == 0 && mkdir("below", 0755) == 0 && mkdir("other", 0755) == 0);
        write_file("below/file", "x");
        saw("in a mount namespace of an identity-mapped user namespace");
        step(in_child(work, &userns) == 0);
        expect(access("own/made", F_OK) == 0 && rename("own", "other/own") == 0, "what was made is there, and can be moved");
        step(chdir("/") == 0 && system(command) == 0);
        return EXIT_SUCCESS;
}
