/* SPDX-License-Identifier: Apache-2.0 */
/* oom.h - counts the OOM kills of a container
 *
 * Counted while the container's cgroup exists: systemd removes a scope as soon as its last process
 * has exited, and the counter with it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct mon_oom {
        int fd;        /* memory.events of the cgroup; -EBADF = none */
        int64_t kills; /* -1 = unknown */
};

#define OOM_NONE ((struct mon_oom) {.fd = -EBADF, .kills = -1})

/* Watches the cgroup of the process. */
void mon_oom_watch(struct mon_oom *oom, pid_t pid);

/* Reads the counter; to be called when the descriptor reports POLLPRI. */
void mon_oom_read(struct mon_oom *oom);
