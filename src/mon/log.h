/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - the log file that `kubectl logs` reads
 *
 * Always appended to, never truncated, never opened through a symbolic link. A log that cannot be
 * written (disk full, quota) does not stop the container: its output is lost and counted, and a
 * line in the log reports the loss when writing works again. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "mon/line.h"

struct mon_log {
        int directory;    /* base of the path; -EBADF when no log is kept */
        const char *path; /* borrowed */
        int fd;
        int failure;           /* errno of the losses since the last successful write */
        uint64_t lines, bytes; /* lost since then */
        uint64_t lost;         /* bytes lost in total */
};

#define LOG_NONE ((struct mon_log) {.directory = -EBADF, .fd = -EBADF})

/* An empty path means no log. */
[[nodiscard]] struct nd_error *mon_log_open(const char *directory, const char *path, struct mon_log *ret);

/* Reopens the file after it was renamed. On an error it keeps the old one and creates nothing.
 * Returns -errno. */
[[nodiscard]] int mon_log_reopen(struct mon_log *log);

/* Writes the buffer's lines, and at the end of a stream also an incomplete one. */
void mon_log_write(struct mon_log *log, const char *stream, struct mon_line_buffer *buffer, bool end);
