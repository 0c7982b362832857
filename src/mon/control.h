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

struct mon_control {
        int listener;
        int connections[CONTROL_CONNECTIONS]; /* -EBADF = free */
};

/* A socket file in a directory; what was there under that name goes. The path may be longer than a socket's address. */
[[nodiscard]] struct nd_error *mon_control_listen(int directory, const char *name, int type, int *ret_fd);

/* Takes the descriptor of the first connection, or -EBADF. */
[[nodiscard]] struct nd_error *mon_control_open(int directory, int first, struct mon_control *ret);

void mon_control_accept(struct mon_control *control);

/* Descriptors that were passed with a message, -EBADF = none. */
struct mon_control_fds {
        int fds[ND_MONITOR_STREAMS];
};
void mon_control_fds_done(struct mon_control_fds *passed);

/* Reads one message of a connection; false when there is none that we know. */
bool mon_control_receive(struct mon_control *control, size_t connection, struct nd_monitor_message *ret,
                         struct mon_control_fds *ret_passed);

void mon_control_reply(struct mon_control *control, size_t connection, const struct nd_monitor_message *message);
void mon_control_broadcast(struct mon_control *control, const struct nd_monitor_message *message); /* to all connections */
