/* SPDX-License-Identifier: Apache-2.0 */
/* oom.h - how many of a container's processes the kernel killed for memory
 *
 * Counted while the container's cgroup is there: systemd removes a scope as soon as its last process has gone, and the counter with it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct oom {
        int fd;        /* the cgroup's memory.events; -EBADF where there is none */
        int64_t kills; /* -1 = nobody can tell */
};

#define OOM_NONE ((struct oom) {.fd = -EBADF, .kills = -1})

/* Watches the cgroup that the process is in. */
void oom_watch(struct oom *oom, pid_t pid);

/* Reads the counter; the descriptor asks for it by POLLPRI. */
void oom_read(struct oom *oom);
