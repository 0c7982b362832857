/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - the one table of system calls that change something
 *
 * Mount, clone, spawn and file-changing system calls go through nd_sys, in src/sys and in the
 * programs. Tests replace the table: so the torture test makes the n-th call fail, for every n.
 * Each entry behaves as its libc wrapper does (-1 and errno); calls that only read, and close(),
 * are not here. */
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef PIDFD_SIGNAL_PROCESS_GROUP
enum { PIDFD_SIGNAL_PROCESS_GROUP = 1 << 2 }; /* Linux 6.9 */
#endif

struct nd_calls {
        int (*openat)(int dir_fd, const char *path, int flags, mode_t mode);
        int (*openat2)(int dir_fd, const char *path, struct open_how *how, size_t size);
        ssize_t (*write)(int fd, const void *bytes, size_t length);
        ssize_t (*writev)(int fd, const struct iovec *vectors, int count);
        ssize_t (*pwrite)(int fd, const void *bytes, size_t length, off_t offset);
        int (*ftruncate)(int fd, off_t length);
        int (*fsync)(int fd);
        int (*renameat)(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path);
        int (*unlinkat)(int dir_fd, const char *path, int flags);
        int (*mkdirat)(int dir_fd, const char *path, mode_t mode);
        int (*fchmod)(int fd, mode_t mode);
        int (*fchown)(int fd, uid_t uid, gid_t gid);
        int (*fchownat)(int dir_fd, const char *path, uid_t uid, gid_t gid, int flags);
        int (*fchmodat)(int dir_fd, const char *path, mode_t mode, int flags);
        int (*utimensat)(int dir_fd, const char *path, const struct timespec times[2], int flags);
        int (*symlinkat)(const char *target, int dir_fd, const char *path);
        int (*linkat)(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path, int flags);
        int (*mknodat)(int dir_fd, const char *path, mode_t mode, dev_t device);
        int (*fsetxattr)(int fd, const char *name, const void *value, size_t length, int flags);
        int (*syncfs)(int fd);

        int (*open_tree)(int dir_fd, const char *path, unsigned flags);
        int (*move_mount)(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
        int (*mount_setattr)(int dir_fd, const char *path, unsigned flags, struct mount_attr *attributes, size_t size);
        int (*fsopen)(const char *type, unsigned flags);
        int (*fsconfig)(int fd, unsigned command, const char *key, const void *value, int aux);
        int (*fsmount)(int fd, unsigned flags, unsigned attributes);
        int (*mount)(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
        int (*umount2)(const char *target, int flags);
        int (*pivot_root)(const char *new_root, const char *put_old);

        pid_t (*clone3)(struct clone_args *arguments, size_t size); /* as fork(): 0 in the child */
        /* The child runs the function on that stack and shares our memory; the caller is suspended
         * until the child has executed a program or exited. */
        pid_t (*clone_vm)(int (*function)(void *), void *stack_top, void *argument, int *ret_pidfd);
        int (*unshare)(int flags);
        int (*setns)(int fd, int type);
        int (*pipe2)(int fds[2], int flags);
        int (*pidfd_send_signal)(int pidfd, int signal, unsigned flags);
};

extern const struct nd_calls nd_calls_real;
extern const struct nd_calls *nd_sys; /* &nd_calls_real unless a test replaced it */
