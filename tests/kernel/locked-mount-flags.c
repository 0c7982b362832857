/* SPDX-License-Identifier: Apache-2.0 */
/* Read-only binds hold against root of a user namespace only when they were made in an outer one.
 *
 * What the kernel does: a mount flag belongs to the mount, and CAP_SYS_ADMIN over the mount
 * namespace clears it again. When a mount namespace is copied for a process of a new user
 * namespace, the kernel locks the flags of every mount in the copy, and all copies that are made of
 * those mounts stay locked. A tree that is handed over as a descriptor (open_tree, move_mount)
 * instead is not locked.
 *
 * Why nodens needs it: root of a rootless node has all capabilities over the node's mount
 * namespace, and must not be able to write to what the user gave it with --bind PATH:ro, nor to the
 * directory that tools outside read. So a builder in a user namespace of its own makes the
 * read-only binds, and then clones init into a second one. Init is to be the launcher's child all
 * the same: CLONE_PARENT allows that. */
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "evidence.h"
#include "sys/mount.h"

static char *directory, *bound, *elsewhere;

/* Writes both maps of a process, "0 outside 65536". */
static void map_ids(pid_t pid, uint32_t outside) {
        char *uids = nd_format("/proc/%d/uid_map", (int) pid), *gids = nd_format("/proc/%d/gid_map", (int) pid),
             *line = nd_format("0 %u %d", outside, BLOCK);

        write_file(uids, line);
        write_file(gids, line);
}

static pid_t clone_with(uint64_t flags) {
        struct clone_args arguments = {.flags = flags, .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD};

        return (pid_t) syscall(SYS_clone3, &arguments, sizeof arguments);
}

/* Waits until the parent has written the maps. */
static void become_root(int fd) {
        char byte;

        step(read(fd, &byte, 1) == 1);
        step(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
        /* Or its children's maps would belong to root of the host. */
        step(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

static bool writable(const char *path) {
        char *file = nd_format("%s/file", path);
        int fd = open(file, O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                (void) close(fd);
        return fd >= 0;
}

static bool make_writable(const char *path) {
        return mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND, nullptr) == 0 && writable(path);
}

static int inner(int fd, int tree) {
        struct mount_attr writing = {.attr_clr = MOUNT_ATTR_RDONLY};

        become_root(fd);
        step(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
        expect(!writable(bound), "in a copy for another user namespace the bind is read-only");
        expect(!make_writable(bound) && errno == EPERM, "and root there cannot remount it for writing");
        expect(mount_setattr(AT_FDCWD, bound, 0, &writing, sizeof writing) < 0 && errno == EPERM, "nor by mount_setattr()");
        expect(umount2(bound, MNT_DETACH) < 0 && errno == EINVAL, "nor take it away");
        step(mount(bound, elsewhere, nullptr, MS_BIND | MS_REC, nullptr) == 0);
        expect(!make_writable(elsewhere) && errno == EPERM, "nor remount a bind of it somewhere else");
        done(nd_mount_attach(tree, AT_FDCWD, elsewhere));
        expect(make_writable(elsewhere), "a read-only tree that came as a descriptor can be remounted: it is not locked");
        return EXIT_SUCCESS;
}

/* Makes the read-only bind, shows that one user namespace is not enough, and clones the inner
 * process as a child of its own parent. */
static int outer(int fd, int report) {
        struct mount_attr reading = {.attr_set = MOUNT_ATTR_RDONLY};
        int tree = -EBADF, pair[2];
        pid_t pid;

        become_root(fd);
        step(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
        step(mount(directory, bound, nullptr, MS_BIND, nullptr) == 0);
        step(mount(nullptr, bound, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);
        expect(make_writable(bound), "root of the user namespace that made a read-only bind can remount it for writing");
        step(mount(nullptr, bound, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);
        done(nd_mount_clone(AT_FDCWD, directory, false, &tree));
        step(mount_setattr(tree, "", AT_EMPTY_PATH, &reading, sizeof reading) == 0);
        step(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        pid = clone_with(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_PARENT);
        expect(pid >= 0, "a process can be cloned into new namespaces as a sibling");
        if (pid == 0)
                exit(inner(pair[1], tree));
        map_ids(pid, 0);
        step(write(pair[0], "", 1) == 1 && write(report, &pid, sizeof pid) == sizeof pid);
        return EXIT_SUCCESS;
}

int main(void) {
        int pair[2], report[2], status, inner_status;
        pid_t pid, inner_pid = 0;

        need_root();
        directory = scratch_directory("/var/tmp");
        bound = scratch_directory("/var/tmp");
        elsewhere = scratch_directory("/var/tmp");
        write_file(nd_format("%s/file", directory), "");
        step(chmod(directory, 0755) == 0 && chown(nd_format("%s/file", directory), POD_ROOT, POD_ROOT) == 0);
        step(chmod(bound, 0755) == 0 && chmod(elsewhere, 0755) == 0);
        step(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 && pipe2(report, O_CLOEXEC) == 0);
        pid = clone_with(CLONE_NEWUSER | CLONE_NEWNS);
        step(pid >= 0);
        if (pid == 0)
                exit(outer(pair[1], report[1]));
        map_ids(pid, POD_ROOT);
        step(write(pair[0], "", 1) == 1);
        step(waitpid(pid, &status, 0) == pid);
        step(close(report[1]) == 0);
        step(status == 0 && read(report[0], &inner_pid, sizeof inner_pid) == sizeof inner_pid);
        expect(waitpid(inner_pid, &inner_status, 0) == inner_pid, "the inner process is a child of the first one");
        step(unlink(nd_format("%s/file", directory)) == 0 && rmdir(directory) == 0 && rmdir(bound) == 0 &&
             rmdir(elsewhere) == 0);
        return inner_status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
