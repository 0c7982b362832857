/* SPDX-License-Identifier: Apache-2.0 */
/* log-file.h - a container's log, read line by line while it grows and is rotated */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

enum {
        LOG_FILE_LINE = 256 << 10, /* a line that is longer is given in pieces of this size */
};

struct cli_log_file {
        const char *path; /* the caller's */
        int fd;           /* -EBADF when closed */
        off_t at;         /* what was read of it */
        struct nd_text rest;
};

#define LOG_FILE_NONE ((struct cli_log_file) {.fd = -EBADF})

typedef void (*cli_log_file_line)(const char *bytes, size_t length, void *userdata);

[[nodiscard]] struct nd_error *cli_log_file_open(const char *path, struct cli_log_file *ret);
void cli_log_file_done(struct cli_log_file *file);

/* Starts over at a place in the file. */
void cli_log_file_seek(struct cli_log_file *file, off_t at);

/* Gives all lines that are whole, up to the end of the file as it is now. Line ends are not part of them. */
[[nodiscard]] struct nd_error *cli_log_file_read(struct cli_log_file *file, cli_log_file_line each, void *userdata);

/* What is left at the very end without a line end. */
void cli_log_file_finish(struct cli_log_file *file, cli_log_file_line each, void *userdata);

/* Reads on, also across a rotation: the old file to its end, then the new one. */
[[nodiscard]] struct nd_error *cli_log_file_follow(struct cli_log_file *file, cli_log_file_line each, void *userdata);
