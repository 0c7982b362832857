/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/calls.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int call_openat(int dir_fd, const char *path, int flags, mode_t mode) {
        return openat(dir_fd, path, flags, mode);
}

/* With RESOLVE_IN_ROOT or RESOLVE_BENEATH the kernel gives up with EAGAIN at ".." if a rename or a
 * mount anywhere on the host happens meanwhile; containers can cause these all the time. */
static int call_openat2(int dir_fd, const char *path, struct open_how *how, size_t size) {
        enum { TRIES = 128 };
        int fd = -1;

        for (int i = 0; i < TRIES; i++) {
                fd = (int) syscall(SYS_openat2, dir_fd, path, how, size);
                if (fd >= 0 || errno != EAGAIN)
                        break;
        }
        return fd;
}

static pid_t call_clone3(struct clone_args *arguments, size_t size) {
        return (pid_t) syscall(SYS_clone3, arguments, size);
}

static pid_t call_clone_vm(int (*function)(void *), void *stack_top, void *argument, int *ret_pidfd) {
        return clone(function, stack_top, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, argument, ret_pidfd);
}

static int call_pidfd_send_signal(int pidfd, int signal, unsigned flags) {
        return pidfd_send_signal(pidfd, signal, nullptr, flags);
}

/* libc declares the path as nonnull, though the kernel takes null for the descriptor itself. */
static int call_utimensat(int dir_fd, const char *path, const struct timespec times[2], int flags) {
        return path ? utimensat(dir_fd, path, times, flags) : futimens(dir_fd, times);
}

static int call_pivot_root(const char *new_root, const char *put_old) {
        return (int) syscall(SYS_pivot_root, new_root, put_old);
}

const struct nd_calls nd_calls_real = {
        .openat = call_openat,
        .openat2 = call_openat2,
        .write = write,
        .writev = writev,
        .pwrite = pwrite,
        .ftruncate = ftruncate,
        .fsync = fsync,
        .renameat = renameat,
        .unlinkat = unlinkat,
        .mkdirat = mkdirat,
        .fchmod = fchmod,
        .fchown = fchown,
        .fchownat = fchownat,
        .fchmodat = fchmodat,
        .utimensat = call_utimensat,
        .symlinkat = symlinkat,
        .linkat = linkat,
        .mknodat = mknodat,
        .fsetxattr = fsetxattr,
        .syncfs = syncfs,
        .open_tree = open_tree,
        .move_mount = move_mount,
        .mount_setattr = mount_setattr,
        .fsopen = fsopen,
        .fsconfig = fsconfig,
        .fsmount = fsmount,
        .mount = mount,
        .umount2 = umount2,
        .pivot_root = call_pivot_root,
        .clone3 = call_clone3,
        .clone_vm = call_clone_vm,
        .unshare = unshare,
        .setns = setns,
        .pipe2 = pipe2,
        .pidfd_send_signal = call_pidfd_send_signal,
};

const struct nd_calls *nd_sys = &nd_calls_real;
