/* SPDX-License-Identifier: Apache-2.0 */
/* tcp-owner.h - whose the other end of a TCP connection on this machine is
 *
 * TCP has no SO_PEERCRED. The kernel tells by NETLINK_SOCK_DIAG whose a socket is, by its two addresses; that takes microseconds, and waits for nothing but the kernel. Without the
 * module (tcp_diag) nothing is known. */
#pragma once

#include <stdint.h>

struct nd_tcp_owner {
        bool known;      /* otherwise the socket is gone, or on its way, or elsewhere */
        uint32_t uid;    /* of the process that made it, as our user namespace sees it */
        uint64_t cgroup; /* that it was made in; 0 where the kernel does not tell */
};

/* A socket for questions; negative = there will be no answers. */
[[nodiscard]] int nd_tcp_owner_open(void);

/* Of the peer of a connected socket. Never blocks. */
[[nodiscard]] struct nd_tcp_owner nd_tcp_owner_of(int questions, int fd);
