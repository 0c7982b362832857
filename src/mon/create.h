/* SPDX-License-Identifier: Apache-2.0 */
/* create.h - runs the OCI runtime's `create` once, with the container's streams, and keeps its
 * error output */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "net/monitor-wire.h"

struct mon_create_streams {
        int in, out, errors;
};

/* Starts it as a session leader, so that all its processes can be killed at the deadline.
 * mount_namespace: to run it in; -EBADF = ours. */
[[nodiscard]] struct nd_error *mon_create_start(char *const *argv, const struct mon_create_streams *streams,
                                                int mount_namespace, pid_t *ret);

/* The last bytes of the OCI runtime's standard error. Reads the pipe until it is empty. */
struct mon_stderr_tail {
        char bytes[ND_MONITOR_TEXT];
        size_t length;
};
void mon_stderr_tail_read(struct mon_stderr_tail *tail, int fd);

/* Returns the last line that is not empty. */
const char *mon_stderr_tail_last_line(const struct mon_stderr_tail *tail, size_t *ret_length);

/* Reads the PID file that the OCI runtime wrote, 0 when there is none. */
[[nodiscard]] pid_t mon_create_read_pid(int directory, const char *name);

/* Returns a process's start time in clock ticks, 0 when there is no such process. */
[[nodiscard]] uint64_t mon_create_start_time(pid_t pid);

/* Parses field 22 of /proc/<pid>/stat, whose second field may contain blanks and parentheses; 0 if
 * it is missing. */
[[nodiscard]] uint64_t mon_create_parse_start_time(const char *text);
