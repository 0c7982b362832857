/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "sys/fd-passing.h"

int nd_terminal_receive(int connection) {
        char name[4096]; /* the runtime's name for it */
        int fd;
        ssize_t n = nd_fd_passing_receive(connection, name, sizeof name, &fd, 1, 0);

        if (n < 0)
                return (int) n;
        if (fd < 0)
                return -EPROTO;
        (void) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        return fd;
}
