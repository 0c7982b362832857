/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/log.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "sys/calls.h"

enum {
        LOG_MODE = 0640,
        NOTICE = 160,
};

/* No component may be a symbolic link, and the file must be regular: a FIFO or a device would block
 * us. */
static int open_file(int directory, const char *path) {
        struct open_how how = {.flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                               .mode = LOG_MODE,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        nd_autoclose int fd = nd_sys->openat2(directory, path, &how, sizeof how);
        struct stat status;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -EINVAL;
        return nd_take_fd(fd);
}

struct nd_error *mon_log_open(const char *directory, const char *path, struct mon_log *ret) {
        nd_autoclose int directory_fd = -EBADF;
        int fd;

        if (*directory == '\0' || *path == '\0') {
                *ret = LOG_NONE;
                return nullptr;
        }
        directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory_fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open log directory '%s'", directory);
        fd = open_file(directory_fd, path);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(-fd), -fd, "open log '%s/%s'", directory, path);
        *ret = (struct mon_log) {.directory = nd_take_fd(directory_fd), .path = path, .fd = fd};
        return nullptr;
}

int mon_log_reopen(struct mon_log *log) {
        int fd;

        if (log->directory < 0)
                return 0;
        fd = open_file(log->directory, log->path);
        if (fd < 0)
                return fd;
        nd_close_fd(&log->fd);
        log->fd = fd;
        return 0;
}

/* Returns how much of the written data is full lines: the last vector of a line ends with its
 * newline. */
static size_t whole_lines(const struct mon_line_batch *batch, size_t written, size_t *ret_lines) {
        size_t end = 0, whole = 0;

        *ret_lines = 0;
        for (size_t i = 0; i < batch->count; i++) {
                const struct iovec *vector = batch->vectors + i;

                end += vector->iov_len;
                if (end > written)
                        break;
                if (((const char *) vector->iov_base)[vector->iov_len - 1] == '\n') {
                        whole = end;
                        (*ret_lines)++;
                }
        }
        return whole;
}

/* Removes a torn line, which would corrupt the next one. We are the only writer, so the end of the
 * file is ours. */
static void truncate_torn_line(int fd, size_t torn) {
        struct stat status;

        if (torn == 0 || fstat(fd, &status) < 0 || status.st_size < (off_t) torn)
                return;
        if (nd_sys->ftruncate(fd, status.st_size - (off_t) torn) < 0)
                (void) !nd_sys->write(fd, "\n", 1);
}

/* Writes all vectors, or as much as possible; then returns -errno. */
static int write_vectors(int fd, const struct mon_line_batch *batch, size_t *ret_written) {
        struct iovec left[LINE_VECTORS];
        struct iovec *first = left;
        size_t count = batch->count;

        memcpy(left, batch->vectors, count * sizeof *left);
        *ret_written = 0;
        while (count > 0) {
                ssize_t n = nd_sys->writev(fd, first, (int) count);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENOSPC;
                *ret_written += (size_t) n;
                for (; count > 0 && (size_t) n >= first->iov_len; first++, count--)
                        n -= (ssize_t) first->iov_len;
                if (count > 0) {
                        first->iov_base = (char *) first->iov_base + n;
                        first->iov_len -= (size_t) n;
                }
        }
        return 0;
}

static void count_lost(struct mon_log *log, int failure, size_t lines, size_t bytes) {
        log->failure = failure;
        log->lines += lines;
        log->bytes += bytes;
        log->lost += bytes;
}

static size_t text_of(const struct mon_line_batch *batch, size_t first_byte) {
        size_t end = 0, text = 0;

        for (size_t i = 0; i < batch->count; i++) {
                const struct iovec *vector = batch->vectors + i;

                end += vector->iov_len;
                if (end > first_byte && vector->iov_base != batch->full && vector->iov_base != batch->partial)
                        text += vector->iov_len;
        }
        return text;
}

static void write_batch(struct mon_log *log, const struct mon_line_batch *batch) {
        size_t written, lines, whole;
        int r;

        if (log->fd < 0 || batch->count == 0)
                return;
        r = write_vectors(log->fd, batch, &written);
        if (r == 0)
                return;
        whole = whole_lines(batch, written, &lines);
        truncate_torn_line(log->fd, written - whole);
        count_lost(log, -r, batch->lines - lines, text_of(batch, whole));
}

/* Before the next write, reports the lines that were lost. */
static void report_losses(struct mon_log *log, const char *stream) {
        uint64_t lines = log->lines, bytes = log->bytes;
        struct mon_line_batch batch;
        char notice[NOTICE];
        size_t written;
        int n;

        if (lines == 0 || log->fd < 0)
                return;
        n = snprintf(notice, sizeof notice, "nodens-mon: %llu lines (%llu bytes) of output were lost here: %s\n",
                     (unsigned long long) lines, (unsigned long long) bytes,
                     strerrordesc_np(log->failure) ?: "the log could not be written");
        mon_line_batch_begin(&batch, stream, nd_clock_wall_ns());
        batch.vectors[0] = (struct iovec) {.iov_base = batch.full, .iov_len = strlen(batch.full)};
        batch.vectors[1] = (struct iovec) {.iov_base = notice, .iov_len = (size_t) n};
        batch.count = 2;
        if (write_vectors(log->fd, &batch, &written) == 0)
                log->lines = log->bytes = 0;
        else
                truncate_torn_line(log->fd, written);
}

void mon_log_write(struct mon_log *log, const char *stream, struct mon_line_buffer *buffer, bool end) {
        struct mon_line_batch batch;
        size_t at = 0;
        bool more;

        do {
                mon_line_batch_begin(&batch, stream, nd_clock_wall_ns());
                more = mon_line_batch_fill(&batch, buffer, &at, end);
                if (batch.count > 0)
                        report_losses(log, stream);
                write_batch(log, &batch);
        } while (more);
        mon_line_consume(buffer, at);
}
