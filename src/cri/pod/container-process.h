/* SPDX-License-Identifier: Apache-2.0 */
/* container-process.h - the first process of a container, and signals to it
 *
 * A container's pid is recorded with the start time of its process, and both are compared before a
 * signal is sent: the pid may have been reused. */
#pragma once

#include "cri/core/pod-table.h"

/* A pidfd of the first process; -EBADF = it is gone. */
[[nodiscard]] int cri_container_process(const struct cri_container *container);

/* True if the first process is gone, or dead and not reaped by the monitor yet. */
[[nodiscard]] bool cri_container_is_dead(const struct cri_container *container);

/* Sends a signal to the first process; false = it is gone. */
bool cri_container_signal(const struct cri_container *container, int signal);

/* Sends SIGKILL to all processes of the container. */
void cri_container_kill(const struct cri_container *container);

/* Sends SIGKILL to all processes of a cgroup, given relative to the mount with a leading slash. ""
 * and removed cgroups are allowed. */
void cri_container_kill_cgroup(const char *cgroup);
