/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the control socket of a monitor and its few connections
 *
 * The daemon passes the first connection at start; a restarted daemon connects to the socket. The
 * monitor never waits for a peer: a peer that does not accept a message is disconnected. */
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

/* Creates a socket file in a directory and replaces an existing one. The path may be longer than
 * sun_path. */
[[nodiscard]] struct nd_error *mon_control_listen(int directory, const char *name, int type, int *ret_fd);

/* Takes the descriptor of the first connection, or -EBADF. */
[[nodiscard]] struct nd_error *mon_control_open(int directory, int first, struct mon_control *ret);

void mon_control_accept(struct mon_control *control);

/* Descriptors that were passed with a message, -EBADF = none. */
struct mon_control_fds {
        int fds[ND_MONITOR_STREAMS];
};
void mon_control_fds_done(struct mon_control_fds *passed);

/* Reads one message of a connection; false when there is none, or none that we know. */
bool mon_control_receive(struct mon_control *control, size_t connection, struct nd_monitor_message *ret,
                         struct mon_control_fds *ret_passed);

void mon_control_reply(struct mon_control *control, size_t connection, const struct nd_monitor_message *message);
/* to all connections */
void mon_control_broadcast(struct mon_control *control, const struct nd_monitor_message *message);
