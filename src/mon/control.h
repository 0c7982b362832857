/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the daemon's way in: a socket, and the few connections to it
 *
 * The first connection is there from the start, handed over by the daemon; others come when a daemon is started again. Nobody is waited for: a peer that
 * does not take a message is cut off. */
#pragma once

#include "base/error.h"
#include "net/monitor-wire.h"

enum {
        CONTROL_CONNECTIONS = 16,
};

struct control {
        int listener;
        int connections[CONTROL_CONNECTIONS]; /* -EBADF = free */
};

/* A socket file in a directory; what was there under that name goes. The path may be longer than a socket's address. */
[[nodiscard]] struct nd_error *control_listen(int directory, const char *name, int type, int *ret_fd);

/* Takes the descriptor of the first connection, or -EBADF. */
[[nodiscard]] struct nd_error *control_open(int directory, int first, struct control *ret);

void control_accept(struct control *control);

/* Descriptors that came with a message, -EBADF = none. */
struct control_gift {
        int fds[ND_MONITOR_STREAMS];
};
void control_gift_done(struct control_gift *gift);

/* Reads one message of a connection; false when there is none that we know. */
bool control_receive(struct control *control, size_t connection, struct nd_monitor_message *ret,
                     struct control_gift *ret_gift);

void control_answer(struct control *control, size_t connection, const struct nd_monitor_message *message);
void control_tell(struct control *control, const struct nd_monitor_message *message); /* everybody */
