/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - a container's standard streams: pipes, or a terminal that the OCI runtime hands over */
#pragma once

#include "base/error.h"
#include "mon/attach.h"
#include "mon/log.h"

/* One direction of output, read by us. */
struct mon_stream {
        int fd; /* -EBADF once it has ended */
        const char *name;
        size_t number; /* of the output, for those who are attached */
        struct mon_line_buffer buffer;
};

/* Reads once, at most so many bytes, and gives what is whole to the log, and all to those who are attached; closes the stream at its end. True when there
 * was something to read. */
bool mon_stream_read(struct mon_stream *stream, size_t most, struct mon_log *log, struct mon_attach *attach);

/* Reads what is there now, but no more than ceiling bytes, and gives the log also what is no line yet: nobody may be there to end it. */
void mon_stream_drain(struct mon_stream *stream, size_t ceiling, struct mon_log *log, struct mon_attach *attach);

/* A pipe whose file belongs to the container's user, who may then open /dev/stdout again. Our end does not block. */
[[nodiscard]] struct nd_error *mon_stream_pipe_out(uid_t uid, gid_t gid, int *ret_ours, int *ret_theirs);
[[nodiscard]] struct nd_error *mon_stream_pipe_in(uid_t uid, gid_t gid, int *ret_ours, int *ret_theirs);

/* The socket that the OCI runtime sends a terminal to. It connects before it has one, so the listener gives way to the connection; neither ever blocks. At most
 * one of them is open, and none once the terminal has come or the OCI runtime has hung up. */
struct mon_console {
        int listener, connection;
};

#define CONSOLE_NONE ((struct mon_console) {.listener = -EBADF, .connection = -EBADF})

[[nodiscard]] struct nd_error *mon_console_listen(int directory, const char *name, struct mon_console *ret);
/* The terminal; -EAGAIN when it has not come. */
[[nodiscard]] int mon_console_receive(struct mon_console *console);
void mon_console_done(struct mon_console *console);
