/* SPDX-License-Identifier: Apache-2.0 */
/* namespace.c - see namespace.h
 *
 * Theory of operation
 *   A child unshares the requested namespaces and sets them up from within, because loopback,
 *   sysctls and the host name are those of the calling process. With a user namespace it first
 *   becomes that namespace's owner (userns.c), reports that and waits for its maps. It then sends
 *   one struct report and lives until the caller has opened its namespaces; a closed socket ends
 *   it, so that it never outlives the caller.
 *   The effective IDs of the process that creates the user namespace are the mapped root's:
 *   per-user kernel limits (namespaces, inotify instances) are charged there. */
#include "sys/namespace.h"

#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "base/text.h"
#include "sys/calls.h"
#include "sys/file.h"
#include "sys/mount.h"

enum step {
        STEP_USER,
        STEP_UNSHARE,
        STEP_LOOPBACK,
        STEP_HOSTNAME,
        STEP_SYSCTL,
        STEP_READY,
};

/* Report of the child. */
struct report {
        enum step step;
        int error_number; /* 0 = success */
        size_t index;     /* of the sysctl */
};

void nd_namespace_set_done(struct nd_namespace_set *namespaces) {
        nd_close_fd(&namespaces->user);
        nd_close_fd(&namespaces->net);
        nd_close_fd(&namespaces->ipc);
        nd_close_fd(&namespaces->uts);
}

static int loopback_up(void) {
        nd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq request = {.ifr_name = "lo"};

        if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
                return -errno;
        request.ifr_flags |= IFF_UP;
        return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int write_sysctl(const struct nd_namespace_sysctl *sysctl) {
        nd_autofree char *path = nd_format("/proc/sys/%s", sysctl->path);
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);

        if (fd < 0)
                return errno == ENOENT && sysctl->optional ? 0 : -errno;
        return nd_sys->write(fd, sysctl->value, strlen(sysctl->value)) < 0 ? -errno : 0;
}

static struct nd_error *sysctl_error(const struct nd_namespace_sysctl *sysctl, int error_number) {
        if (error_number == ENOENT)
                return nd_error_new(ND_INVALID, ENOENT, "sysctl '%s': this kernel does not have it", sysctl->path);
        if (error_number == EINVAL || error_number == ERANGE)
                return nd_error_new(ND_INVALID, error_number, "sysctl '%s': the kernel refuses the value '%s'", sysctl->path,
                                    sysctl->value);
        return nd_error_new(nd_error_code_of(error_number), error_number, "set sysctl '%s' to '%s'", sysctl->path,
                            sysctl->value);
}

struct nd_error *nd_namespace_sysctl_write(const struct nd_namespace_sysctl *sysctl) {
        int r = write_sysctl(sysctl);

        return r < 0 ? sysctl_error(sysctl, -r) : nullptr;
}

/* ---- the child ---- */

static bool say(int fd, const struct report *report) {
        return send(fd, report, sizeof *report, MSG_NOSIGNAL) == sizeof *report;
}

static bool settle(const struct nd_namespace_plan *plan, struct report *report) {
        int r;

        report->step = STEP_UNSHARE;
        if (plan->flags != 0 && nd_sys->unshare(plan->flags) < 0)
                return report->error_number = errno, false;
        report->step = STEP_LOOPBACK;
        r = plan->flags & CLONE_NEWNET ? loopback_up() : 0;
        if (r < 0)
                return report->error_number = -r, false;
        report->step = STEP_HOSTNAME;
        if (plan->flags & CLONE_NEWUTS && plan->hostname && sethostname(plan->hostname, strlen(plan->hostname)) < 0)
                return report->error_number = errno, false;
        report->step = STEP_SYSCTL;
        for (report->index = 0; report->index < plan->sysctl_count; report->index++) {
                r = write_sysctl(&plan->sysctls[report->index]);
                if (r < 0)
                        return report->error_number = -r, false;
        }
        report->step = STEP_READY;
        return true;
}

[[noreturn]] static void child_main(const struct nd_namespace_plan *plan, int fd) {
        struct report report = {.step = STEP_USER};
        char byte;

        if (plan->user) {
                report.error_number = -nd_userns_enter_new(plan->user);
                /* Waits until the maps are written. */
                if (!say(fd, &report) || report.error_number != 0 || recv(fd, &byte, 1, 0) != 1)
                        _exit(EXIT_FAILURE);
        }
        (void) settle(plan, &report);
        if (say(fd, &report))
                /* Until the caller has opened our namespaces, or has exited. */
                (void) recv(fd, &byte, 1, 0);
        _exit(EXIT_SUCCESS);
}

/* ---- the caller ---- */

static struct nd_error *report_error(const struct nd_namespace_plan *plan, const struct report *report) {
        int number = report->error_number;

        switch (report->step) {
        case STEP_USER:
                return nd_error_new(nd_error_code_of(number), number, "make a user namespace");
        case STEP_UNSHARE:
                return nd_error_new(nd_error_code_of(number), number, "create namespaces (flags %#x)", (unsigned) plan->flags);
        case STEP_LOOPBACK:
                return nd_error_new(nd_error_code_of(number), number, "bring up the loopback interface");
        case STEP_HOSTNAME:
                return nd_error_new(nd_error_code_of(number), number, "set the host name '%s'", plan->hostname);
        case STEP_SYSCTL:
                return sysctl_error(&plan->sysctls[report->index], number);
        case STEP_READY:
                break;
        }
        return nullptr;
}

static struct nd_error *listen_to(const struct nd_namespace_plan *plan, int fd, enum step awaited) {
        struct report report;
        ssize_t n;

        do
                n = recv(fd, &report, sizeof report, 0);
        while (n < 0 && errno == EINTR);
        if (n != sizeof report)
                return nd_error_new(ND_INTERNAL, n < 0 ? errno : 0, "the child that makes namespaces exited early");
        if (report.error_number != 0)
                return report_error(plan, &report);
        if (report.step != awaited)
                return nd_error_new(ND_INTERNAL, EPROTO, "unexpected step %d of the child that makes namespaces",
                                    (int) report.step);
        return nullptr;
}

static struct nd_error *open_one(int procfd, const char *name, int *ret) {
        int fd = nd_sys->openat(procfd, name, O_RDONLY | O_CLOEXEC, 0);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open a new namespace (%s)", name);
        *ret = fd;
        return nullptr;
}

/* Drives the child, which waits at the end. */
static struct nd_error *direct(const struct nd_namespace_plan *plan, pid_t pid, int fd, struct nd_namespace_set *ret) {
        nd_cleanup(nd_namespace_set_done) struct nd_namespace_set made = ND_NAMESPACE_SET_NONE;
        nd_autoclose int procfd = -EBADF;
        char path[32];

        (void) snprintf(path, sizeof path, "/proc/%d", (int) pid);
        nd_try(nd_dir_open(AT_FDCWD, path, &procfd));
        if (plan->user) {
                nd_try(listen_to(plan, fd, STEP_USER));
                nd_try(nd_userns_write_maps(plan->user, procfd));
                if (send(fd, "", 1, MSG_NOSIGNAL) != 1)
                        return nd_error_new(ND_INTERNAL, errno, "send to the child that makes namespaces");
        }
        nd_try(listen_to(plan, fd, STEP_READY));
        if (plan->user)
                nd_try(open_one(procfd, "ns/user", &made.user));
        if (plan->flags & CLONE_NEWNET)
                nd_try(open_one(procfd, "ns/net", &made.net));
        if (plan->flags & CLONE_NEWIPC)
                nd_try(open_one(procfd, "ns/ipc", &made.ipc));
        if (plan->flags & CLONE_NEWUTS)
                nd_try(open_one(procfd, "ns/uts", &made.uts));
        *ret = nd_take(made, ND_NAMESPACE_SET_NONE);
        return nullptr;
}

struct nd_error *nd_namespace_make(const struct nd_namespace_plan *plan, struct nd_namespace_set *ret) {
        nd_autoclose int ours = -EBADF, theirs = -EBADF, pidfd = -EBADF;
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &pidfd};
        struct nd_error *error;
        siginfo_t end;
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create socket pair");
        ours = pair[0];
        theirs = pair[1];
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "start a child for namespaces");
        if (pid == 0) {
                (void) close(ours); /* or the child would wait for itself */
                child_main(plan, theirs);
        }
        nd_close_fd(&theirs);
        error = direct(plan, pid, ours, ret);
        nd_close_fd(&ours);
        (void) waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED);
        return error;
}

/* ---- pins ---- */

struct nd_error *nd_namespace_pin(int fd, int dir_fd, const char *path) {
        nd_autoclose int tree = -EBADF, file = -EBADF;
        struct nd_error *error;

        tree = nd_sys->open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "clone the namespace file for '%s'", path);
        file = nd_sys->openat(dir_fd, path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create '%s'", path);
        error = nd_mount_attach(tree, dir_fd, path);
        if (error)
                (void) nd_sys->unlinkat(dir_fd, path, 0);
        return error;
}

bool nd_namespace_is_pinned(const char *path) {
        struct statfs fs;

        return statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

struct nd_error *nd_namespace_unpin(const char *path) {
        if (nd_sys->umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "unmount '%s'", path);
        if (nd_sys->unlinkat(AT_FDCWD, path, 0) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", path);
        return nullptr;
}
