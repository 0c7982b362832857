/* SPDX-License-Identifier: Apache-2.0 */
/* container-process.h - the first process of a container, and signals for it
 *
 * A container's pid is recorded with the start time of its process, and both are compared before a
 * signal is sent: the number may belong to another process by then. */
#pragma once

#include "cri/pods.h"

/* A pidfd of the first process; -EBADF = it is gone. */
[[nodiscard]] int container_process(const struct container *container);

/* True when the first process is gone, or dead and not reaped by the monitor yet. */
[[nodiscard]] bool container_is_dead(const struct container *container);

/* Sends a signal to the first process; false = it is gone. */
bool container_signal(const struct container *container, int signal);

/* Sends SIGKILL to all processes of the container. */
void container_kill(const struct container *container);

/* Sends SIGKILL to all processes of a cgroup, given below the mount with a leading slash. "" is
 * fine, and so is one that is gone. */
void container_kill_cgroup(const char *cgroup);
