/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/stream.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "mon/control.h"
#include "sys/calls.h"
#include "sys/terminal.h"

/* Returns the result of read(). A terminal without users gives EIO, which means end of file. */
static ssize_t fill(struct mon_stream *stream, size_t most) {
        struct mon_line_buffer *buffer = &stream->buffer;
        size_t room = sizeof buffer->bytes - buffer->length;
        ssize_t n;

        while ((n = read(stream->fd, buffer->bytes + buffer->length, most < room ? most : room)) < 0 && errno == EINTR)
                ;
        if (n > 0)
                buffer->length += (size_t) n;
        if (n < 0 && errno == EIO)
                return 0;
        return n;
}

bool mon_stream_read(struct mon_stream *stream, size_t most, struct mon_log *log, struct mon_attach *attach) {
        ssize_t n;

        if (stream->fd < 0)
                return false;
        n = fill(stream, most);
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n > 0)
                mon_attach_write_output(attach, stream->number, stream->buffer.bytes + stream->buffer.length - n, (size_t) n);
        mon_log_write(log, stream->name, &stream->buffer, n <= 0);
        if (n <= 0) {
                nd_close_fd(&stream->fd);
                mon_attach_close_output(attach, stream->number);
        }
        return n > 0;
}

void mon_stream_drain(struct mon_stream *stream, size_t ceiling, struct mon_log *log, struct mon_attach *attach) {
        for (size_t taken = 0; taken < ceiling && mon_stream_read(stream, ATTACH_PIECE, log, attach); taken += ATTACH_PIECE)
                ;
        mon_log_write(log, stream->name, &stream->buffer, true);
}

static struct nd_error *make_pipe(uid_t uid, gid_t gid, int fds[2]) {
        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe");
        if (nd_sys->fchown(fds[0], uid, gid) < 0) {
                int failure = errno;

                (void) close(fds[0]);
                (void) close(fds[1]);
                return nd_error_new(nd_error_code_of(failure), failure, "change the owner of a pipe to %u:%u", uid, gid);
        }
        return nullptr;
}

struct nd_error *mon_stream_pipe_out(uid_t uid, gid_t gid, int *ret_ours, int *ret_theirs) {
        int fds[2];

        nd_try(make_pipe(uid, gid, fds));
        (void) fcntl(fds[0], F_SETFL, O_NONBLOCK);
        *ret_ours = fds[0];
        *ret_theirs = fds[1];
        return nullptr;
}

struct nd_error *mon_stream_pipe_in(uid_t uid, gid_t gid, int *ret_ours, int *ret_theirs) {
        int fds[2];

        nd_try(make_pipe(uid, gid, fds));
        (void) fcntl(fds[1], F_SETFL, O_NONBLOCK);
        *ret_ours = fds[1];
        *ret_theirs = fds[0];
        return nullptr;
}

struct nd_error *mon_console_listen(int directory, const char *name, struct mon_console *ret) {
        *ret = CONSOLE_NONE;
        return mon_control_listen(directory, name, SOCK_STREAM, &ret->listener);
}

int mon_console_receive(struct mon_console *console) {
        int fd;

        if (console->connection < 0) {
                console->connection = accept4(console->listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (console->connection < 0)
                        return -errno;
                nd_close_fd(&console->listener);
        }
        fd = nd_terminal_receive(console->connection);
        if (fd != -EAGAIN)
                nd_close_fd(&console->connection);
        return fd;
}

void mon_console_done(struct mon_console *console) {
        nd_close_fd(&console->listener);
        nd_close_fd(&console->connection);
}
