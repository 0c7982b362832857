/* SPDX-License-Identifier: Apache-2.0 */
/* tcp-owner.h - which user and cgroup own the other end of a local TCP connection
 *
 * TCP has no SO_PEERCRED. The kernel reports the owner of a socket, found by its two addresses,
 * through NETLINK_SOCK_DIAG; that takes microseconds and waits for nothing but the kernel. Without
 * the kernel module tcp_diag the owner is unknown. */
#pragma once

#include <stdint.h>

struct cri_tcp_owner {
        bool known;      /* false: the socket is closed, not established yet, or on another host */
        uint32_t uid;    /* of the process that created it, as our user namespace sees it */
        uint64_t cgroup; /* in which it was created; 0 if the kernel does not report it */
};

/* Opens a netlink socket for queries; negative = owners stay unknown. */
[[nodiscard]] int cri_tcp_owner_open(void);

/* Looks up the peer of a connected socket. Never blocks. */
[[nodiscard]] struct cri_tcp_owner cri_tcp_owner_of(int questions, int fd);
