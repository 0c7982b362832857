/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/control.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "sys/calls.h"
#include "sys/parcel.h"

enum {
        BACKLOG = 16,
};

struct nd_error *control_listen(int directory, const char *name, int type, int *ret_fd) {
        nd_autoclose int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        if (fd < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "make a socket");
        (void) snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, name);
        if (nd_sys->unlinkat(directory, name, 0) < 0 && errno != ENOENT)
                return nd_error_new(nd_code_of_errno(errno), errno, "remove the old socket '%s'", name);
        if (bind(fd, (struct sockaddr *) &address, sizeof address) < 0 || listen(fd, BACKLOG) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "listen on the socket '%s'", name);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

struct nd_error *control_open(int directory, int first, struct control *ret) {
        struct control control = {};

        nd_try(control_listen(directory, "control", SOCK_SEQPACKET, &control.listener));
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                control.connections[i] = i == 0 ? first : -EBADF;
        *ret = control;
        return nullptr;
}

/* Only who could kill us anyway may speak to us. */
static bool is_ours(int fd) {
        struct ucred peer;
        socklen_t length = sizeof peer;

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

void control_accept(struct control *control) {
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

void control_gift_done(struct control_gift *gift) {
        for (size_t i = 0; i < nd_count_of(gift->fds); i++)
                nd_close_fd(&gift->fds[i]);
}

bool control_receive(struct control *control, size_t connection, struct nd_monitor_message *ret,
                     struct control_gift *ret_gift) {
        static char bytes[ND_MONITOR_MESSAGE]; /* what is read points into it until the next call */
        ssize_t n = nd_parcel_receive(control->connections[connection], bytes, sizeof bytes, ret_gift->fds,
                                      nd_count_of(ret_gift->fds), MSG_DONTWAIT);

        if (n == -EAGAIN)
                return false;
        if (n <= 0) {
                nd_close_fd(&control->connections[connection]);
                return false;
        }
        return nd_monitor_message_read(bytes, (size_t) n, ret);
}

void control_answer(struct control *control, size_t connection, const struct nd_monitor_message *message) {
        char bytes[ND_MONITOR_MESSAGE];
        size_t length = nd_monitor_message_write(message, bytes);

        if (control->connections[connection] >= 0 &&
            send(control->connections[connection], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                nd_close_fd(&control->connections[connection]);
}

void control_tell(struct control *control, const struct nd_monitor_message *message) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                control_answer(control, i, message);
}
