/* SPDX-License-Identifier: Apache-2.0 */
#include "net/broker.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/unix.h"
#include "sys/fd-passing.h"

enum { ANSWER_MS = 5000 }; /* the broker gives up earlier */

struct nd_error *nd_broker_connect(const char *path, int *ret_fd) {
        nd_autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address;

        nd_try(nd_unix_address(path, &address));
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof address) < 0)
                return nd_error_new(ND_UNAVAILABLE, errno, "connect to the broker at '%s'", path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static int fill(const struct sockaddr *address, socklen_t length, struct nd_broker_request *ret) {
        *ret = (struct nd_broker_request) {.version = ND_BROKER_VERSION, .family = address->sa_family};
        if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
                struct sockaddr_in v4;

                memcpy(&v4, address, sizeof v4);
                memcpy(ret->address, &v4.sin_addr, sizeof v4.sin_addr);
                ret->port = ntohs(v4.sin_port);
                return 0;
        }
        if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
                struct sockaddr_in6 v6;

                memcpy(&v6, address, sizeof v6);
                memcpy(ret->address, &v6.sin6_addr, sizeof v6.sin6_addr);
                ret->port = ntohs(v6.sin6_port);
                return 0;
        }
        return -EAFNOSUPPORT;
}

int nd_broker_ask(int fd, const struct sockaddr *address, socklen_t length) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        struct nd_broker_request request;
        struct nd_broker_reply reply = {};
        int connection = -EBADF, r = fill(address, length, &request);
        ssize_t n;

        if (r < 0)
                return r;
        n = nd_fd_passing_send(fd, &request, sizeof request, nullptr, 0, MSG_DONTWAIT);
        if (n != (ssize_t) sizeof request)
                return -EPROTO;
        if (poll(&wait, 1, ANSWER_MS) <= 0)
                return -ETIMEDOUT;
        n = nd_fd_passing_receive(fd, &reply, sizeof reply, &connection, 1, MSG_DONTWAIT);
        if (n == (ssize_t) sizeof reply && reply.status == 0 && connection >= 0)
                return connection;
        if (connection >= 0)
                (void) close(connection);
        if (n != (ssize_t) sizeof reply || reply.status <= 0 || reply.status == EPROTO || reply.status == ETIMEDOUT)
                return n == (ssize_t) sizeof reply && reply.status == ETIMEDOUT ? -EHOSTUNREACH : -EPROTO;
        return -reply.status;
}
