/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - those who look at a container's output while it runs, and type into its input
 *
 * Theory of operation
 *   A client is a connection of the daemon's that has given us sockets, one for each stream. All buffers are the kernel's. Output goes to the log and
 *   to every client's socket, in pieces of ATTACH_PIECE; a socket says that it is writable while a quarter of it is in use at most, so a piece always
 *   has room, and so has all that a pipe still holds when the container ends.
 *   Who is slower than the container holds it up (@held): nothing is read from the container until he has taken something. So whoever runs a command to
 *   get its output gets all of it. But patience is bounded: a client may be late by ATTACH_PATIENCE_MS in all, and earns that back only by taking bytes, at
 *   ATTACH_RATE a second. One that stands still is cut off (he is told), and the container has waited that long, once.
 *   Input goes the other way, one piece at a time, while the container's input takes it; several clients' pieces come in turn.
 * Owns       the clients' sockets; not the connections (control.h), whose numbers the clients have. */
#pragma once

#include <stdint.h>

#include "mon/control.h"

enum {
        ATTACH_PIECE = 4096,
        ATTACH_PATIENCE_MS = 1000,
        ATTACH_RATE = 256 << 10,
        ATTACH_CLIENTS = 8, /* so that a daemon which comes back finds a free connection */
        ATTACH_OUTPUTS = 2, /* standard output and standard error */
};

struct client {
        bool here;
        int in;
        int outputs[ATTACH_OUTPUTS];
        bool held[ATTACH_OUTPUTS]; /* waits for room there, */
        uint64_t since_us;         /* since then; 0 = it does not */
        uint64_t late_us;          /* was late by so much before */
};

struct attach {
        struct control *control;
        struct client clients[CONTROL_CONNECTIONS];
        bool input_over; /* of one of them */
        size_t first, length;
        char input[ATTACH_PIECE]; /* what the container's input has not taken yet */
};

void attach_begin(struct attach *attach, struct control *control);

/* Makes a connection a client, and tells it so, or why not. Takes what it can use of the gift. */
void attach_take(struct attach *attach, size_t connection, unsigned streams, struct control_gift *gift);
void attach_forget(struct attach *attach, size_t connection); /* it is gone */

/* How much may be read of an output now: nothing while somebody holds it up, most when nobody is there. */
[[nodiscard]] size_t attach_room(struct attach *attach, size_t output, size_t most, uint64_t now_us);
void attach_give(struct attach *attach, size_t output, const char *bytes, size_t length);
void attach_end_output(struct attach *attach, size_t output); /* there will be no more */

/* The socket of one who holds it up, -EBADF when he does not; and when it has room again. */
[[nodiscard]] int attach_held(const struct attach *attach, size_t connection, size_t output);
void attach_release(struct attach *attach, size_t connection, uint64_t now_us);

/* When our patience with the first of them ends, in microseconds of the monotonic clock; 0 = nobody holds anything up. */
[[nodiscard]] uint64_t attach_deadline(const struct attach *attach);
void attach_pass_deadline(struct attach *attach, uint64_t now_us); /* cuts off those who are too late */

/* A piece of a client's input, for the container's. */
void attach_read_input(struct attach *attach, size_t connection);
/* Writes what waits. False when the container takes no input any more. */
[[nodiscard]] bool attach_write_input(struct attach *attach, int in);
void attach_end_input(struct attach *attach);
