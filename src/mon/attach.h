/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - clients attached to a running container's streams
 *
 * Theory of operation
 *   A client is a connection of the daemon that has passed us one socket per stream. All buffers
 *   are the kernel's. Output goes to the log and to every client's socket, in pieces of
 *   ATTACH_PIECE. A socket is writable while at most a quarter of it is in use, so a piece always
 *   fits, and so does everything that a pipe still holds when the container ends.
 *   Backpressure: a client that is slower than the container stalls it (@stalled): nothing is read
 *   from the container until the client has read something. So a client that attaches for a
 *   command's output gets all of it. But stalls are bounded: their sum is limited to
 *   mon_attach_stall_timeout_us, and a client reduces the sum only by reading, at ATTACH_RATE bytes
 *   per second. A client beyond the limit gets a message and is disconnected.
 *   Input goes the other way, one piece at a time, as fast as the container accepts it; pieces of
 *   several clients alternate.
 * Owns       the clients' sockets; not the connections (control.h), which clients refer to by
 * number. */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "mon/control.h"

enum {
        ATTACH_PIECE = 4096,
        ATTACH_RATE = 256 << 10,
        /* fewer than connections, so that a restarted daemon finds a free one */
        ATTACH_CLIENTS = 8,
        ATTACH_OUTPUTS = 2, /* standard output and standard error */
};

/* Limit of the sum of a client's stalls. */
static constexpr uint64_t mon_attach_stall_timeout_us = ND_SECOND_US;

struct mon_client {
        bool attached;
        int in;
        int outputs[ATTACH_OUTPUTS];
        bool stalled[ATTACH_OUTPUTS]; /* its socket has no room */
        uint64_t stalled_since_us;    /* 0 = not stalled */
        /* sum of earlier stalls, less what it has earned back by reading */
        uint64_t stalled_us;
};

struct mon_attach {
        struct mon_control *control;
        struct mon_client clients[CONTROL_CONNECTIONS];
        bool input_ended; /* of any client */
        size_t first, length;
        char input[ATTACH_PIECE]; /* not yet accepted by the container's input */
};

void mon_attach_init(struct mon_attach *attach, struct mon_control *control);

/* Makes a connection a client, and replies whether it succeeded. Takes the descriptors that it
 * uses. */
void mon_attach_add(struct mon_attach *attach, size_t connection, unsigned streams, struct mon_control_fds *passed);
/* the connection was closed */
void mon_attach_remove(struct mon_attach *attach, size_t connection);

/* Returns how much of an output may be read now: 0 while a client stalls it, most while no client
 * is attached. */
[[nodiscard]] size_t mon_attach_room(struct mon_attach *attach, size_t output, size_t most, uint64_t now_us);
void mon_attach_write_output(struct mon_attach *attach, size_t output, const char *bytes, size_t length);
void mon_attach_close_output(struct mon_attach *attach, size_t output); /* at end of file */

/* Returns the socket of a client that stalls the output, else -EBADF. mon_attach_resume() must be
 * called when it is writable. */
[[nodiscard]] int mon_attach_stalled_fd(const struct mon_attach *attach, size_t connection, size_t output);
void mon_attach_resume(struct mon_attach *attach, size_t connection, uint64_t now_us);

/* Returns when the first client reaches the stall timeout, in microseconds of the monotonic clock;
 * 0 = no client stalls. */
[[nodiscard]] uint64_t mon_attach_deadline(const struct mon_attach *attach);
/* disconnects clients beyond the stall timeout */
void mon_attach_drop_late(struct mon_attach *attach, uint64_t now_us);

/* Reads a piece of a client's input for the container. */
void mon_attach_read_input(struct mon_attach *attach, size_t connection);
/* Writes pending input. Returns false when the container has closed its input. */
[[nodiscard]] bool mon_attach_write_input(struct mon_attach *attach, int in);
void mon_attach_close_input(struct mon_attach *attach);
