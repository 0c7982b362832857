/* SPDX-License-Identifier: Apache-2.0 */
/* stdio.h - a process's standard streams over a connection: the common part of exec and attach
 *
 * A kind provides the streams and reports their end. The rest is done here: the streams that the
 * client opens, data in both directions, the terminal's size, the result. */
#pragma once

#include <termios.h>

#include "cri/stream/connection.h"

struct cri_container;
struct cri_stdio;

enum cri_stdio_role {
        STDIO_ERROR,
        STDIO_INPUT,
        STDIO_OUTPUT,
        STDIO_ERRORS,
        STDIO_RESIZE,
        STDIO_ROLES,
};

struct cri_stdio_kind {
        const char *trouble; /* prefix of the result's error message */
        /* All streams are open. On error the session ends, but cancel() is still called for
         * *ret. */
        struct nd_error *(*launch)(struct cri_stdio *stdio, struct cri_container *container, void **ret);
        void (*resize)(void *work, const struct winsize *window);
        void (*cancel)(void *work); /* frees it; also called after it has ended by itself */
};

/* ---- for session types ---- */

extern const char *const cri_stdio_protocols[], *const cri_stdio_channel_protocols[];
void *cri_stdio_begin(struct cri_stream_connection *connection, struct cri_stream_request *request, const char *protocol,
                      const struct cri_stdio_kind *kind);
bool cri_stdio_event(const struct cri_stream_event *event, void *stdio);
void cri_stdio_room(void *stdio);
void cri_stdio_gone(void *stdio);

/* ---- for kinds ---- */

const struct cri_stream_parts *cri_stdio_parts(const struct cri_stdio *stdio);
const struct cri_stream_request *cri_stdio_request(const struct cri_stdio *stdio);
[[nodiscard]] bool cri_stdio_wants(const struct cri_stdio *stdio, enum cri_stdio_role role);
/* nullptr if the client has not sent it */
const struct winsize *cri_stdio_window(const struct cri_stdio *stdio);

/* Our ends of the streams, which must be non-blocking; takes them. A terminal is passed as two
 * descriptors. */
[[nodiscard]] struct nd_error *cri_stdio_give_output(struct cri_stdio *stdio, enum cri_stdio_role role, int fd);
[[nodiscard]] struct nd_error *cri_stdio_give_input(struct cri_stdio *stdio, int fd);

/* Ends the session: with success (nullptr and the exit code) or an error, which it takes. Remaining
 * output is still sent. May free the stdio and with it the work. */
void cri_stdio_end(struct cri_stdio *stdio, struct nd_error *error, int code);
