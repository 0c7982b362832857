/* SPDX-License-Identifier: Apache-2.0 */
/* oom.h - how many of a container's processes the kernel killed for memory
 *
 * Counted while the container's cgroup is there: systemd removes a scope as soon as its last process has gone, and the counter with it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct mon_oom {
        int fd;        /* the cgroup's memory.events; -EBADF where there is none */
        int64_t kills; /* -1 = nobody can tell */
};

#define OOM_NONE ((struct mon_oom) {.fd = -EBADF, .kills = -1})

/* Watches the cgroup that the process is in. */
void mon_oom_watch(struct mon_oom *oom, pid_t pid);

/* Reads the counter; the descriptor asks for it by POLLPRI. */
void mon_oom_read(struct mon_oom *oom);
