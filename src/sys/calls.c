/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/calls.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int call_openat(int dirfd, const char *path, int flags, mode_t mode) {
        return openat(dirfd, path, flags, mode);
}

static pid_t call_clone3(struct clone_args *arguments, size_t size) {
        return (pid_t) syscall(SYS_clone3, arguments, size);
}

static int call_pidfd_send_signal(int pidfd, int signal, unsigned flags) {
        return pidfd_send_signal(pidfd, signal, nullptr, flags);
}

const struct nd_calls nd_calls_real = {
        .openat = call_openat,
        .write = write,
        .fsync = fsync,
        .renameat = renameat,
        .unlinkat = unlinkat,
        .mkdirat = mkdirat,
        .fchmod = fchmod,
        .fchown = fchown,
        .open_tree = open_tree,
        .move_mount = move_mount,
        .mount_setattr = mount_setattr,
        .fsopen = fsopen,
        .fsconfig = fsconfig,
        .fsmount = fsmount,
        .mount = mount,
        .umount2 = umount2,
        .clone3 = call_clone3,
        .unshare = unshare,
        .setns = setns,
        .pipe2 = pipe2,
        .pidfd_send_signal = call_pidfd_send_signal,
};

const struct nd_calls *nd_sys = &nd_calls_real;
