/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/faults.h>

#include <err.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
        enum fault_call call;
        unsigned nth; /* 0 = none */
        int error_number;
        bool onwards;
        enum fault_call also;
        int also_error; /* 0 = none */
        unsigned kill_at;
        size_t most_written; /* 0 = all */
} plan;

/* Shared with children: see faults.h. */
static struct {
        atomic_uint of[FAULT_CALLS];
        atomic_uint all;
        atomic_bool met;
} *counts;

const char *fault_name(enum fault_call call) {
        static const char *const names[] = {
                [FAULT_OPENAT] = "openat",
                [FAULT_WRITE] = "write",
                [FAULT_FSYNC] = "fsync",
                [FAULT_RENAMEAT] = "renameat",
                [FAULT_UNLINKAT] = "unlinkat",
                [FAULT_MKDIRAT] = "mkdirat",
                [FAULT_OPEN_TREE] = "open_tree",
                [FAULT_MOVE_MOUNT] = "move_mount",
                [FAULT_MOUNT_SETATTR] = "mount_setattr",
                [FAULT_FSOPEN] = "fsopen",
                [FAULT_FSCONFIG] = "fsconfig",
                [FAULT_FSMOUNT] = "fsmount",
                [FAULT_MOUNT] = "mount",
                [FAULT_CLONE3] = "clone3",
                [FAULT_UNSHARE] = "unshare",
                [FAULT_PIPE2] = "pipe2",
                [FAULT_PIDFD_SEND_SIGNAL] = "pidfd_send_signal",
                [FAULT_PWRITE] = "pwrite",
                [FAULT_FTRUNCATE] = "ftruncate",
                [FAULT_FCHMOD] = "fchmod",
                [FAULT_FCHOWN] = "fchown",
                [FAULT_FCHOWNAT] = "fchownat",
                [FAULT_FCHMODAT] = "fchmodat",
                [FAULT_UTIMENSAT] = "utimensat",
                [FAULT_SYMLINKAT] = "symlinkat",
                [FAULT_LINKAT] = "linkat",
                [FAULT_MKNODAT] = "mknodat",
                [FAULT_FSETXATTR] = "fsetxattr",
                [FAULT_SYNCFS] = "syncfs",
                [FAULT_UMOUNT2] = "umount2",
                [FAULT_PIVOT_ROOT] = "pivot_root",
                [FAULT_SETNS] = "setns",
        };

        return names[call];
}

/* Counts a call; true when it is to fail, with errno set. */
static bool strikes(enum fault_call call) {
        unsigned number = atomic_fetch_add(&counts->of[call], 1) + 1;

        if (atomic_fetch_add(&counts->all, 1) + 1 == plan.kill_at) {
                atomic_store(&counts->met, true);
                (void) kill(getpid(), SIGKILL);
        }
        if (plan.also_error != 0 && call == plan.also) {
                errno = plan.also_error;
                return true;
        }
        if (plan.nth == 0 || call != plan.call || (plan.onwards ? number < plan.nth : number != plan.nth))
                return false;
        atomic_store(&counts->met, true);
        errno = plan.error_number;
        return true;
}

static int fault_openat(int dir_fd, const char *path, int flags, mode_t mode) {
        return strikes(FAULT_OPENAT) ? -1 : nd_calls_real.openat(dir_fd, path, flags, mode);
}

static ssize_t fault_write(int fd, const void *bytes, size_t length) {
        if (strikes(FAULT_WRITE))
                return -1;
        if (plan.most_written > 0 && length > plan.most_written)
                length = plan.most_written;
        return nd_calls_real.write(fd, bytes, length);
}

static int fault_fsync(int fd) {
        return strikes(FAULT_FSYNC) ? -1 : nd_calls_real.fsync(fd);
}

static int fault_renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path) {
        return strikes(FAULT_RENAMEAT) ? -1 : nd_calls_real.renameat(old_dir_fd, old_path, new_dir_fd, new_path);
}

static int fault_unlinkat(int dir_fd, const char *path, int flags) {
        return strikes(FAULT_UNLINKAT) ? -1 : nd_calls_real.unlinkat(dir_fd, path, flags);
}

static int fault_mkdirat(int dir_fd, const char *path, mode_t mode) {
        return strikes(FAULT_MKDIRAT) ? -1 : nd_calls_real.mkdirat(dir_fd, path, mode);
}

static int fault_open_tree(int dir_fd, const char *path, unsigned flags) {
        return strikes(FAULT_OPEN_TREE) ? -1 : nd_calls_real.open_tree(dir_fd, path, flags);
}

static int fault_move_mount(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
        return strikes(FAULT_MOVE_MOUNT) ? -1 : nd_calls_real.move_mount(from_fd, from, to_fd, to, flags);
}

static int fault_mount_setattr(int dir_fd, const char *path, unsigned flags, struct mount_attr *attributes, size_t size) {
        return strikes(FAULT_MOUNT_SETATTR) ? -1 : nd_calls_real.mount_setattr(dir_fd, path, flags, attributes, size);
}

static int fault_fsopen(const char *type, unsigned flags) {
        return strikes(FAULT_FSOPEN) ? -1 : nd_calls_real.fsopen(type, flags);
}

static int fault_fsconfig(int fd, unsigned command, const char *key, const void *value, int aux) {
        return strikes(FAULT_FSCONFIG) ? -1 : nd_calls_real.fsconfig(fd, command, key, value, aux);
}

static int fault_fsmount(int fd, unsigned flags, unsigned attributes) {
        return strikes(FAULT_FSMOUNT) ? -1 : nd_calls_real.fsmount(fd, flags, attributes);
}

static int fault_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data) {
        return strikes(FAULT_MOUNT) ? -1 : nd_calls_real.mount(source, target, type, flags, data);
}

static pid_t fault_clone3(struct clone_args *arguments, size_t size) {
        return strikes(FAULT_CLONE3) ? -1 : nd_calls_real.clone3(arguments, size);
}

static pid_t fault_clone_vm(int (*function)(void *), void *stack_top, void *argument, int *ret_pidfd) {
        return strikes(FAULT_CLONE3) ? -1 : nd_calls_real.clone_vm(function, stack_top, argument, ret_pidfd);
}

static int fault_unshare(int flags) {
        return strikes(FAULT_UNSHARE) ? -1 : nd_calls_real.unshare(flags);
}

static int fault_pipe2(int fds[2], int flags) {
        return strikes(FAULT_PIPE2) ? -1 : nd_calls_real.pipe2(fds, flags);
}

static int fault_pidfd_send_signal(int pidfd, int signal, unsigned flags) {
        return strikes(FAULT_PIDFD_SEND_SIGNAL) ? -1 : nd_calls_real.pidfd_send_signal(pidfd, signal, flags);
}

static ssize_t fault_pwrite(int fd, const void *bytes, size_t length, off_t offset) {
        return strikes(FAULT_PWRITE) ? -1 : nd_calls_real.pwrite(fd, bytes, length, offset);
}

static int fault_ftruncate(int fd, off_t length) {
        return strikes(FAULT_FTRUNCATE) ? -1 : nd_calls_real.ftruncate(fd, length);
}

static int fault_fchmod(int fd, mode_t mode) {
        return strikes(FAULT_FCHMOD) ? -1 : nd_calls_real.fchmod(fd, mode);
}

static int fault_fchown(int fd, uid_t uid, gid_t gid) {
        return strikes(FAULT_FCHOWN) ? -1 : nd_calls_real.fchown(fd, uid, gid);
}

static int fault_fchownat(int dir_fd, const char *path, uid_t uid, gid_t gid, int flags) {
        return strikes(FAULT_FCHOWNAT) ? -1 : nd_calls_real.fchownat(dir_fd, path, uid, gid, flags);
}

static int fault_fchmodat(int dir_fd, const char *path, mode_t mode, int flags) {
        return strikes(FAULT_FCHMODAT) ? -1 : nd_calls_real.fchmodat(dir_fd, path, mode, flags);
}

static int fault_utimensat(int dir_fd, const char *path, const struct timespec times[2], int flags) {
        return strikes(FAULT_UTIMENSAT) ? -1 : nd_calls_real.utimensat(dir_fd, path, times, flags);
}

static int fault_symlinkat(const char *target, int dir_fd, const char *path) {
        return strikes(FAULT_SYMLINKAT) ? -1 : nd_calls_real.symlinkat(target, dir_fd, path);
}

static int fault_linkat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path, int flags) {
        return strikes(FAULT_LINKAT) ? -1 : nd_calls_real.linkat(old_dir_fd, old_path, new_dir_fd, new_path, flags);
}

static int fault_mknodat(int dir_fd, const char *path, mode_t mode, dev_t device) {
        return strikes(FAULT_MKNODAT) ? -1 : nd_calls_real.mknodat(dir_fd, path, mode, device);
}

static int fault_fsetxattr(int fd, const char *name, const void *value, size_t length, int flags) {
        return strikes(FAULT_FSETXATTR) ? -1 : nd_calls_real.fsetxattr(fd, name, value, length, flags);
}

static int fault_syncfs(int fd) {
        return strikes(FAULT_SYNCFS) ? -1 : nd_calls_real.syncfs(fd);
}

static int fault_umount2(const char *target, int flags) {
        return strikes(FAULT_UMOUNT2) ? -1 : nd_calls_real.umount2(target, flags);
}

static int fault_pivot_root(const char *new_root, const char *put_old) {
        return strikes(FAULT_PIVOT_ROOT) ? -1 : nd_calls_real.pivot_root(new_root, put_old);
}

static int fault_setns(int fd, int type) {
        return strikes(FAULT_SETNS) ? -1 : nd_calls_real.setns(fd, type);
}

static void start(void) {
        static struct nd_calls table;

        if (!counts) {
                counts = mmap(nullptr, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                if (counts == MAP_FAILED)
                        err(EXIT_FAILURE, "map shared memory");
        }
        for (int i = 0; i < FAULT_CALLS; i++)
                atomic_store(&counts->of[i], 0);
        atomic_store(&counts->all, 0);
        atomic_store(&counts->met, false);

        table = nd_calls_real;
        table.openat = fault_openat;
        table.write = fault_write;
        table.fsync = fault_fsync;
        table.renameat = fault_renameat;
        table.unlinkat = fault_unlinkat;
        table.mkdirat = fault_mkdirat;
        table.open_tree = fault_open_tree;
        table.move_mount = fault_move_mount;
        table.mount_setattr = fault_mount_setattr;
        table.fsopen = fault_fsopen;
        table.fsconfig = fault_fsconfig;
        table.fsmount = fault_fsmount;
        table.mount = fault_mount;
        table.clone3 = fault_clone3;
        table.clone_vm = fault_clone_vm;
        table.unshare = fault_unshare;
        table.pipe2 = fault_pipe2;
        table.pidfd_send_signal = fault_pidfd_send_signal;
        table.pwrite = fault_pwrite;
        table.ftruncate = fault_ftruncate;
        table.fchmod = fault_fchmod;
        table.fchown = fault_fchown;
        table.fchownat = fault_fchownat;
        table.fchmodat = fault_fchmodat;
        table.utimensat = fault_utimensat;
        table.symlinkat = fault_symlinkat;
        table.linkat = fault_linkat;
        table.mknodat = fault_mknodat;
        table.fsetxattr = fault_fsetxattr;
        table.syncfs = fault_syncfs;
        table.umount2 = fault_umount2;
        table.pivot_root = fault_pivot_root;
        table.setns = fault_setns;
        nd_sys = &table;
}

void faults_arm(enum fault_call call, unsigned nth, int error_number, bool onwards) {
        start();
        plan = (typeof(plan)) {.call = call, .nth = nth, .error_number = error_number, .onwards = onwards};
}

void faults_also(enum fault_call call, int error_number) {
        plan.also = call;
        plan.also_error = error_number;
}

void faults_kill_at(unsigned nth) {
        start();
        plan = (typeof(plan)) {.kill_at = nth};
}

void faults_short_writes(size_t most) {
        start();
        plan = (typeof(plan)) {.most_written = most};
}

bool faults_disarm(void) {
        nd_sys = &nd_calls_real;
        plan = (typeof(plan)) {};
        return counts && atomic_load(&counts->met);
}
