/* SPDX-License-Identifier: Apache-2.0 */
/* fd-passing.c - see fd-passing.h
 *
 * Theory of operation
 *   The control buffer length passed to the kernel is CMSG_LEN() of the caller's capacity, not
 *   CMSG_SPACE(): the latter is rounded up, and a sender could fill the padding with one descriptor
 *   more, which would never be closed. */
#include "sys/fd-passing.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/memory.h"

union ancillary {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(ND_FD_PASSING_MOST * sizeof(int))];
};

ssize_t nd_fd_passing_send(int fd, const void *bytes, size_t length, const int *descriptors, size_t count, int flags) {
        union ancillary control = {};
        struct iovec vector = {.iov_base = (void *) bytes, .iov_len = length};
        struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
        ssize_t n;

        nd_assert(count <= ND_FD_PASSING_MOST);
        if (count > 0) {
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
                memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        }
        do
                n = sendmsg(fd, &message, MSG_NOSIGNAL | flags);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

/* The descriptors that the kernel installed in this process; at most @capacity. */
static void unpack(struct msghdr *message, int *ret_descriptors, size_t capacity) {
        const struct cmsghdr *header = CMSG_FIRSTHDR(message);
        size_t count = 0;

        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
                count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                nd_assert(count <= capacity);
                memcpy(ret_descriptors, CMSG_DATA(header), count * sizeof(int));
        }
        for (size_t i = count; i < capacity; i++)
                ret_descriptors[i] = -EBADF;
}

ssize_t nd_fd_passing_receive(int fd, void *bytes, size_t size, int *ret_descriptors, size_t capacity, int flags) {
        union ancillary control = {};
        struct iovec vector = {.iov_base = bytes, .iov_len = size};
        struct msghdr message = {.msg_iov = &vector,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = CMSG_LEN(capacity * sizeof(int))};
        ssize_t n;

        nd_assert(capacity <= ND_FD_PASSING_MOST);
        do
                n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | flags);
        while (n < 0 && errno == EINTR);
        if (n < 0) {
                n = -errno;
                message.msg_controllen = 0;
        }
        unpack(&message, ret_descriptors, capacity);
        if (n < 0 || !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
                return n;
        for (size_t i = 0; i < capacity; i++)
                nd_close_fd(&ret_descriptors[i]);
        return -EMSGSIZE;
}
