/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

int nd_terminal_receive(int connection) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {};
        char name[4096];
        struct iovec vector = {.iov_base = name, .iov_len = sizeof name};
        struct msghdr message = {
                .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        int fd;

        if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) < 0)
                return -errno;
        if (message.msg_controllen < CMSG_LEN(sizeof fd) || control.header.cmsg_type != SCM_RIGHTS)
                return -EPROTO;
        memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
        (void) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        return fd;
}
