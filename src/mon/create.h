/* SPDX-License-Identifier: Apache-2.0 */
/* create.h - the OCI runtime's `create`: run once, with the container's streams, and listened to when it does not succeed */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "net/monitor-wire.h"

struct mon_create_streams {
        int in, out, errors;
};

/* Starts it as the leader of a session, so that a deadline can end all of it. */
[[nodiscard]] struct nd_error *mon_create_start(char *const *argv, const struct mon_create_streams *streams, pid_t *ret);

/* The last bytes of the OCI runtime's standard error, at most so many. Reads all that is in the pipe. */
struct mon_stderr_tail {
        char bytes[ND_MONITOR_TEXT];
        size_t length;
};
void mon_stderr_tail_read(struct mon_stderr_tail *tail, int fd);

/* The last line that is not empty. */
const char *mon_stderr_tail_last_line(const struct mon_stderr_tail *tail, size_t *ret_length);

/* The pid that the OCI runtime wrote, 0 when it wrote none. */
[[nodiscard]] pid_t mon_create_read_pid(int directory, const char *name);

/* A process's start time in clock ticks, 0 when there is no such process. */
[[nodiscard]] uint64_t mon_create_start_time(pid_t pid);

/* Field 22 of the text of /proc/<pid>/stat, whose second field may hold blanks and brackets; 0 where there is none. */
[[nodiscard]] uint64_t mon_create_parse_start_time(const char *text);
