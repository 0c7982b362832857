/* SPDX-License-Identifier: Apache-2.0 */
/* broker.h - asks the broker of a rootless node for a connection of the host
 *
 * A connection of SOCK_SEQPACKET has one request at a time: a struct nd_broker_request, answered by
 * a struct nd_broker_reply, with one descriptor if the status is 0. The descriptor is a stream of
 * AF_UNIX that the broker copies to and from its own TCP socket. It is not the TCP socket: a
 * process that has one can dissolve its connection (connect() with AF_UNSPEC) and connect it to the
 * host's loopback. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

enum { ND_BROKER_VERSION = 1 };

struct nd_broker_request {
        uint16_t version;
        uint16_t family;     /* AF_INET or AF_INET6 */
        uint16_t port;       /* in host byte order */
        uint16_t reserved;   /* 0 */
        uint8_t address[16]; /* the first 4 bytes for AF_INET, the others are 0 */
};

struct nd_broker_reply {
        int32_t status; /* 0 or an errno */
};

/* Connects to the broker's socket; never blocks. */
[[nodiscard]] struct nd_error *nd_broker_connect(const char *path, int *ret_fd);

/* Returns a descriptor that is connected to the address, or -errno: -ETIMEDOUT and -EPROTO mean
 * that this connection to the broker cannot be used any more, others that it refused or could not
 * connect. Waits for the answer, a few seconds at most. */
[[nodiscard]] int nd_broker_ask(int fd, const struct sockaddr *address, socklen_t length);
