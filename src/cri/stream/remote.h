/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - a process's standard streams over a connection: what exec and attach have in common
 *
 * A kind says where the streams come from and what their end is; the rest is done here: which streams the client opens, bytes both ways, the terminal's
 * size, the result. */
#pragma once

#include <termios.h>

#include "cri/stream/connection.h"

struct container;
struct remote;

enum remote_role {
        STDIO_ERROR,
        STDIO_INPUT,
        STDIO_OUTPUT,
        STDIO_ERRORS,
        STDIO_RESIZE,
        STDIO_ROLES,
};

struct remote_kind {
        const char *trouble; /* what the result's words begin with */
        /* All streams are there. An error is the end, but what is in *ret is still cancelled. */
        struct nd_error *(*launch)(struct remote *stdio, struct container *container, void **ret);
        void (*resize)(void *work, const struct winsize *window);
        void (*cancel)(void *work); /* frees it; also when it has ended by itself */
};

/* ---- for session types ---- */

extern const char *const remote_protocols[], *const remote_channel_protocols[];
void *remote_begin(struct connection *connection, struct stream_request *request, const char *protocol,
                   const struct remote_kind *kind);
bool remote_event(const struct stream_event *event, void *stdio);
void remote_room(void *stdio);
void remote_gone(void *stdio);

/* ---- for kinds ---- */

const struct stream_parts *remote_parts(const struct remote *stdio);
const struct stream_request *remote_request(const struct remote *stdio);
[[nodiscard]] bool remote_wants(const struct remote *stdio, enum remote_role role);
const struct winsize *remote_window(const struct remote *stdio); /* nullptr when the client has not told */

/* Our ends of the streams, which must not block; taken. A terminal is both, as two descriptors. */
[[nodiscard]] struct nd_error *remote_give_output(struct remote *stdio, enum remote_role role, int fd);
[[nodiscard]] struct nd_error *remote_give_input(struct remote *stdio, int fd);

/* It is over: well (a nullptr and the exit code) or not. Takes the error. What is there of output is still sent; the remote, and with it the work, may be
 * gone afterwards. */
void remote_end(struct remote *stdio, struct nd_error *error, int code);
