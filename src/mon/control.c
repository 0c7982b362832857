/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/control.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "sys/calls.h"
#include "sys/fd-passing.h"

enum {
        BACKLOG = 16,
};

struct nd_error *mon_control_listen(int directory, const char *name, int type, int *ret_fd) {
        nd_autoclose int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket");
        (void) snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, name);
        if (nd_sys->unlinkat(directory, name, 0) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove old socket '%s'", name);
        if (bind(fd, (struct sockaddr *) &address, sizeof address) < 0 || listen(fd, BACKLOG) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen on socket '%s'", name);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

struct nd_error *mon_control_open(int directory, int first, struct mon_control *ret) {
        struct mon_control control = {};

        nd_try(mon_control_listen(directory, "control", SOCK_SEQPACKET, &control.listener));
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                control.connections[i] = i == 0 ? first : -EBADF;
        *ret = control;
        return nullptr;
}

/* Accepts only peers of our own user, who could kill us anyway. */
static bool is_ours(int fd) {
        struct ucred peer;
        socklen_t length = sizeof peer;

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

void mon_control_accept(struct mon_control *control) {
        nd_autoclose int fd = accept4(control->listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 || !is_ours(fd))
                return;
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                if (control->connections[i] < 0) {
                        control->connections[i] = nd_take_fd(fd);
                        return;
                }
        }
}

void mon_control_fds_done(struct mon_control_fds *passed) {
        for (size_t i = 0; i < nd_count_of(passed->fds); i++)
                nd_close_fd(&passed->fds[i]);
}

bool mon_control_receive(struct mon_control *control, size_t connection, struct nd_monitor_message *ret,
                         struct mon_control_fds *ret_passed) {
        /* the returned message points into it until the next call */
        static char bytes[ND_MONITOR_MESSAGE];
        ssize_t n = nd_fd_passing_receive(control->connections[connection], bytes, sizeof bytes, ret_passed->fds,
                                          nd_count_of(ret_passed->fds), MSG_DONTWAIT);

        if (n == -EAGAIN)
                return false;
        if (n <= 0) {
                nd_close_fd(&control->connections[connection]);
                return false;
        }
        return nd_monitor_message_read(bytes, (size_t) n, ret);
}

void mon_control_reply(struct mon_control *control, size_t connection, const struct nd_monitor_message *message) {
        char bytes[ND_MONITOR_MESSAGE];
        size_t length = nd_monitor_message_write(message, bytes);

        if (control->connections[connection] >= 0 &&
            send(control->connections[connection], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                nd_close_fd(&control->connections[connection]);
}

void mon_control_broadcast(struct mon_control *control, const struct nd_monitor_message *message) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                mon_control_reply(control, i, message);
}
