/* SPDX-License-Identifier: Apache-2.0 */
/* create.h - the engine's `create`: run once, with the container's streams, and listened to when it does not succeed */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "net/monitor-wire.h"

struct create_streams {
        int in, out, errors;
};

/* Starts it as the leader of a session, so that a deadline can end all of it. */
[[nodiscard]] struct nd_error *create_start(char *const *argv, const struct create_streams *streams, pid_t *ret);

/* The words that wait in a pipe, at most so many of the last ones. Reads all that is there. */
struct words {
        char bytes[ND_MONITOR_TEXT];
        size_t length;
};
void words_read(struct words *words, int fd);

/* The last line that says something. */
const char *words_last(const struct words *words, size_t *ret_length);

/* The pid that the engine wrote, 0 when it wrote none. */
[[nodiscard]] pid_t create_pid(int directory, const char *name);

/* A process's start time in clock ticks, 0 when there is no such process. */
[[nodiscard]] uint64_t create_birth(pid_t pid);

/* Field 22 of the text of /proc/<pid>/stat, whose second field may hold blanks and brackets; 0 where there is none. */
[[nodiscard]] uint64_t create_birth_of(const char *text);
