/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - clients attached to a running container's streams
 *
 * Theory of operation
 *   A client is a connection of the daemon's that has given us sockets, one for each stream. All buffers are the kernel's. Output goes to the log and
 *   to every client's socket, in pieces of ATTACH_PIECE; a socket says that it is writable while a quarter of it is in use at most, so a piece always
 *   has room, and so has all that a pipe still holds when the container ends.
 *   Backpressure: a client that is slower than the container stalls it (@stalled): nothing is read from the container until the client has read
 *   something. So a client that attaches for a command's output gets all of it. But stalls are bounded: they may add up to mon_attach_stall_timeout_us,
 *   and a client reduces the sum only by reading, at ATTACH_RATE bytes a second. A client beyond the bound gets a message and is disconnected.
 *   Input goes the other way, one piece at a time, while the container's input takes it; several clients' pieces come in turn.
 * Owns       the clients' sockets; not the connections (control.h), whose numbers the clients have. */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "mon/control.h"

enum {
        ATTACH_PIECE = 4096,
        ATTACH_RATE = 256 << 10,
        ATTACH_CLIENTS = 8, /* so that a daemon which comes back finds a free connection */
        ATTACH_OUTPUTS = 2, /* standard output and standard error */
};

/* How long one client may stall the container, in all. */
static constexpr uint64_t mon_attach_stall_timeout_us = ND_SECOND_US;

struct mon_client {
        bool attached;
        int in;
        int outputs[ATTACH_OUTPUTS];
        bool stalled[ATTACH_OUTPUTS]; /* its socket has no room */
        uint64_t stalled_since_us;    /* 0 = it is not stalled */
        uint64_t stalled_us;          /* sum of earlier stalls, less what it has earned back */
};

struct mon_attach {
        struct mon_control *control;
        struct mon_client clients[CONTROL_CONNECTIONS];
        bool input_ended; /* of one client */
        size_t first, length;
        char input[ATTACH_PIECE]; /* what the container's input has not taken yet */
};

void mon_attach_init(struct mon_attach *attach, struct mon_control *control);

/* Makes a connection a client, and replies whether it became one. Takes the descriptors that it can use. */
void mon_attach_add(struct mon_attach *attach, size_t connection, unsigned streams, struct mon_control_fds *passed);
void mon_attach_remove(struct mon_attach *attach, size_t connection); /* it was closed */

/* How much may be read of an output now: nothing while a client stalls it, most while no client is attached. */
[[nodiscard]] size_t mon_attach_room(struct mon_attach *attach, size_t output, size_t most, uint64_t now_us);
void mon_attach_write_output(struct mon_attach *attach, size_t output, const char *bytes, size_t length);
void mon_attach_close_output(struct mon_attach *attach, size_t output); /* there will be no more */

/* The socket of a client that stalls the output, -EBADF when it does not; mon_attach_resume() is called when it has room again. */
[[nodiscard]] int mon_attach_stalled_fd(const struct mon_attach *attach, size_t connection, size_t output);
void mon_attach_resume(struct mon_attach *attach, size_t connection, uint64_t now_us);

/* When the first client reaches the stall timeout, in microseconds of the monotonic clock; 0 = no client stalls. */
[[nodiscard]] uint64_t mon_attach_deadline(const struct mon_attach *attach);
void mon_attach_drop_late(struct mon_attach *attach, uint64_t now_us); /* disconnects clients beyond the stall timeout */

/* A piece of a client's input, for the container's. */
void mon_attach_read_input(struct mon_attach *attach, size_t connection);
/* Writes what waits. False when the container takes no input any more. */
[[nodiscard]] bool mon_attach_write_input(struct mon_attach *attach, int in);
void mon_attach_close_input(struct mon_attach *attach);
