/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - a container's standard streams: pipes, or a terminal that the OCI runtime passes */
#pragma once

#include "base/error.h"
#include "mon/attach.h"
#include "mon/log.h"

/* One direction of output, read by us. */
struct mon_stream {
        int fd; /* -EBADF at end of file */
        const char *name;
        size_t number; /* number of the output, for attached clients */
        struct mon_line_buffer buffer;
};

/* Reads once, up to most bytes; writes complete lines to the log and everything to attached
 * clients; closes the stream at end of file. Returns true when there was something to read. */
bool mon_stream_read(struct mon_stream *stream, size_t most, struct mon_log *log, struct mon_attach *attach);

/* Reads what is available, up to ceiling bytes, and also logs an incomplete last line: there may be
 * no process left to complete it. */
void mon_stream_drain(struct mon_stream *stream, size_t ceiling, struct mon_log *log, struct mon_attach *attach);

/* Creates a pipe owned by the container's user, who may then reopen /dev/stdout. Our end is
 * non-blocking. */
[[nodiscard]] struct nd_error *mon_stream_pipe_out(uid_t uid, gid_t gid, int *ret_ours, int *ret_theirs);
[[nodiscard]] struct nd_error *mon_stream_pipe_in(uid_t uid, gid_t gid, int *ret_ours, int *ret_theirs);

/* The socket that the OCI runtime sends a terminal to. It connects before it has one, so the
 * connection replaces the listener; neither ever blocks. At most one of them is open, and none once
 * the terminal has arrived or the OCI runtime has disconnected. */
struct mon_console {
        int listener, connection;
};

#define CONSOLE_NONE ((struct mon_console) {.listener = -EBADF, .connection = -EBADF})

[[nodiscard]] struct nd_error *mon_console_listen(int directory, const char *name, struct mon_console *ret);
/* Returns the terminal; -EAGAIN when it has not arrived. */
[[nodiscard]] int mon_console_receive(struct mon_console *console);
void mon_console_done(struct mon_console *console);
