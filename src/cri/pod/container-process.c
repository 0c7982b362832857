/* SPDX-License-Identifier: Apache-2.0 */
/* container-process.c - see container-process.h */
#include "cri/pod/container-process.h"

#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>

#include "sys/calls.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/process.h"

#define CGROUPS "/sys/fs/cgroup"

/* 0 = no such process. */
static uint64_t birth_of(pid_t pid) {
        uint64_t birth = 0;

        nd_ignore(nd_process_start_time(pid, &birth));
        return birth;
}

/* Opens the pidfd first: the comparison after it is then about the process that it refers to. */
int cri_container_process(const struct cri_container *container) {
        nd_autoclose int fd = container->pid > 0 ? pidfd_open(container->pid, 0) : -EBADF;

        if (fd < 0 || birth_of(container->pid) != container->pid_birth)
                return -EBADF;
        return nd_take_fd(fd);
}

/* After its first thread has exited, a process with other threads is a zombie in /proc/<pid>/stat,
 * but not to its pidfd. */
bool cri_container_is_dead(const struct cri_container *container) {
        nd_autoclose int fd = cri_container_process(container);
        struct pollfd ended = {.fd = fd, .events = POLLIN};

        return fd < 0 || poll(&ended, 1, 0) > 0;
}

bool cri_container_signal(const struct cri_container *container, int signal) {
        nd_autoclose int fd = cri_container_process(container);

        return fd >= 0 && nd_sys->pidfd_send_signal(fd, signal, 0) == 0;
}

void cri_container_kill_cgroup(const char *cgroup) {
        nd_autofree char *path = nd_format(CGROUPS "%s/cgroup.kill", cgroup);

        if (*cgroup)
                nd_ignore(nd_file_write_kernel(path, "1"));
}

void cri_container_kill(const struct cri_container *container) {
        (void) cri_container_signal(container, SIGKILL);
        /* Kill the whole cgroup: in a shared pid namespace the others do not die with the first
         * process. */
        cri_container_kill_cgroup(container->cgroup);
}
