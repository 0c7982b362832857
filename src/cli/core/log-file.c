/* SPDX-License-Identifier: Apache-2.0 */
/* log-file.c - see log-file.h
 *
 * Theory of operation
 *   The kubelet rotates a log by renaming it and asking the runtime to reopen it. The monitor then
 *   creates a file of the old name and no longer writes to the old one. So if another file has the
 *   name, ours is complete. We check for that first, then read ours to its end, then switch to the
 *   new one; in the other order a line written in between would be lost. A file that got shorter
 *   was truncated: it is read from the beginning. */
#include "cli/core/log-file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { READ = 64 << 10 };

void cli_log_file_done(struct cli_log_file *file) {
        nd_close_fd(&file->fd);
        nd_text_done(&file->rest);
}

struct nd_error *cli_log_file_open(const char *path, struct cli_log_file *ret) {
        nd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open log '%s'", path);
        if (!S_ISREG(st.st_mode))
                return nd_error_new(ND_INVALID, 0, "log '%s' is not a regular file", path);
        *ret = (struct cli_log_file) {.path = path, .fd = nd_take_fd(fd), .rest = ND_TEXT(LOG_FILE_LINE + READ)};
        return nullptr;
}

void cli_log_file_seek(struct cli_log_file *file, off_t at) {
        file->at = at;
        file->rest.length = 0;
}

/* Passes on complete lines and keeps the rest. Returns false if a line is to be the last. */
static bool give_lines(struct cli_log_file *file, cli_log_file_line each, void *userdata) {
        const char *at = file->rest.bytes, *const end = file->rest.bytes + file->rest.length;
        const char *newline;
        bool more = true;

        while (more && (newline = memchr(at, '\n', (size_t) (end - at)))) {
                more = each(at, (size_t) (newline - at), userdata);
                at = newline + 1;
        }
        if (more && (size_t) (end - at) >= LOG_FILE_LINE) {
                more = each(at, (size_t) (end - at), userdata);
                at = end;
        }
        file->rest.length = (size_t) (end - at);
        memmove(file->rest.bytes, at, file->rest.length);
        return more;
}

struct nd_error *cli_log_file_read(struct cli_log_file *file, cli_log_file_line each, void *userdata) {
        char buffer[READ];
        ssize_t n;

        while ((n = pread(file->fd, buffer, sizeof buffer, file->at)) > 0) {
                file->at += n;
                nd_text_append(&file->rest, buffer, (size_t) n);
                if (!give_lines(file, each, userdata))
                        return nullptr;
        }
        return n < 0 ? nd_error_new(nd_error_code_of(errno), errno, "read log '%s'", file->path) : nullptr;
}

void cli_log_file_finish(struct cli_log_file *file, cli_log_file_line each, void *userdata) {
        if (file->rest.length > 0)
                (void) each(file->rest.bytes, file->rest.length, userdata);
        file->rest.length = 0;
}

/* Opens the file that has the name now, if it is not ours; else returns a negative descriptor. */
static int open_successor(const struct cli_log_file *file, struct cli_log_file *ret) {
        nd_autoerror struct nd_error *error = nullptr;
        struct stat ours, named;

        if (fstat(file->fd, &ours) < 0 || stat(file->path, &named) < 0 ||
            (ours.st_ino == named.st_ino && ours.st_dev == named.st_dev))
                return -ENOENT;
        error = cli_log_file_open(file->path, ret);
        return error ? -ENOENT : 0;
}

struct nd_error *cli_log_file_follow(struct cli_log_file *file, cli_log_file_line each, void *userdata) {
        nd_cleanup(cli_log_file_done) struct cli_log_file successor = LOG_FILE_NONE;
        bool rotated = open_successor(file, &successor) == 0;
        struct stat st;

        if (fstat(file->fd, &st) == 0 && st.st_size < file->at)
                cli_log_file_seek(file, 0);
        nd_try(cli_log_file_read(file, each, userdata));
        if (!rotated)
                return nullptr;
        cli_log_file_finish(file, each, userdata);
        cli_log_file_done(file);
        *file = nd_take(successor, LOG_FILE_NONE);
        return cli_log_file_read(file, each, userdata);
}
