/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - the file that `kubectl logs` reads
 *
 * Always appended to, never truncated, never reached through a symbolic link. A log that cannot be written (no space, a quota) does not stop the
 * container: what it says meanwhile is lost, counted, and the log tells so when it takes lines again. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "mon/line.h"

struct mon_log {
        int directory;    /* what the path is below; -EBADF when no log is kept */
        const char *path; /* not ours */
        int fd;
        int failure;           /* errno of what was lost since the log last took a line */
        uint64_t lines, bytes; /* that much of it */
        uint64_t lost;         /* bytes, in all */
};

#define LOG_NONE ((struct mon_log) {.directory = -EBADF, .fd = -EBADF})

/* An empty path keeps no log. */
[[nodiscard]] struct nd_error *mon_log_open(const char *directory, const char *path, struct mon_log *ret);

/* Opens the file anew, for it was renamed. With an error the old one is kept and nothing new was made. -errno. */
[[nodiscard]] int mon_log_reopen(struct mon_log *log);

/* Takes the buffer's lines, and at the end of a stream also what is no line yet. */
void mon_log_write(struct mon_log *log, const char *stream, struct mon_line_buffer *buffer, bool end);
