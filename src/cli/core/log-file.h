/* SPDX-License-Identifier: Apache-2.0 */
/* log-file.h - reads a container's log line by line while it grows and is rotated */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

enum {
        LOG_FILE_LINE = 256 << 10, /* longer lines are split into pieces of this size */
};

struct cli_log_file {
        const char *path; /* borrowed */
        int fd;           /* -EBADF when closed */
        off_t at;         /* read position */
        struct nd_text rest;
};

#define LOG_FILE_NONE ((struct cli_log_file) {.fd = -EBADF})

/* Returns false to stop: reading then ends without an error. */
typedef bool (*cli_log_file_line)(const char *bytes, size_t length, void *userdata);

[[nodiscard]] struct nd_error *cli_log_file_open(const char *path, struct cli_log_file *ret);
void cli_log_file_done(struct cli_log_file *file);

/* Continues at another position in the file. */
void cli_log_file_seek(struct cli_log_file *file, off_t at);

/* Passes on all complete lines up to the current end of the file, without their newlines. */
[[nodiscard]] struct nd_error *cli_log_file_read(struct cli_log_file *file, cli_log_file_line each, void *userdata);

/* Passes on the rest without a newline at the end. */
void cli_log_file_finish(struct cli_log_file *file, cli_log_file_line each, void *userdata);

/* Continues reading, also across a rotation: the old file to its end, then the new one. */
[[nodiscard]] struct nd_error *cli_log_file_follow(struct cli_log_file *file, cli_log_file_line each, void *userdata);
