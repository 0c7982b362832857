/* SPDX-License-Identifier: Apache-2.0 */
/* fd-passing.h - sends and receives bytes with descriptors (SCM_RIGHTS) over a unix socket */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum {
        ND_FD_PASSING_MOST = 64, /* maximum per message */
};

/* Sends @length bytes with @count descriptors. Returns the number of bytes sent, or -errno. @flags:
 * MSG_DONTWAIT. */
[[nodiscard]] ssize_t nd_fd_passing_send(int fd, const void *bytes, size_t length, const int *descriptors, size_t count,
                                         int flags);

/* Receives at most @size bytes and @capacity descriptors (close-on-exec); the rest of
 * @ret_descriptors becomes -EBADF. Returns the number of bytes, 0 at the end of file, or -errno:
 * -EMSGSIZE if the message had more of either, and then nothing of it is kept. @flags:
 * MSG_DONTWAIT. */
[[nodiscard]] ssize_t nd_fd_passing_receive(int fd, void *bytes, size_t size, int *ret_descriptors, size_t capacity,
                                            int flags);
