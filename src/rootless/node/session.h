/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - a command in the node: a session of its own, and a monitor that leads it
 *
 * The monitor is the command's parent and lives in the node. It tells the program outside what becomes of the command in single bytes, and takes
 * single bytes as orders; both are pipes, since a socket would tell the node who is at its other end. */
#pragma once

enum rootless_session_report {
        SESSION_STOPPED = 'S',  /* the command was stopped, as by ^Z */
        SESSION_TERMINAL = 'T', /* the command wants to use the terminal and is stopped until it is given */
};

enum {
        SESSION_FOREGROUND =
                255, /* an order: the command may use the terminal from now on; every other byte is a signal for it */
        SESSION_STREAMS = 3,
        SESSION_NODE = 7, /* a descriptor */
};

struct rootless_session {
        char *const *argv;
        char *const *environment;
        const char *directory;        /* where it starts; one that is not in the node is passed over */
        int streams[SESSION_STREAMS]; /* none of them leads to the caller's terminal */
        int terminal;                 /* slave of a pseudoterminal of our own, the session's controlling one; -EBADF = none */
        bool foreground;              /* the command has the terminal from its start on */
        int orders, reports;          /* pipes: what we read, what we write */
        int failure;                  /* a pipe that gets an errno when the command cannot be executed, and closes otherwise */
        int node;                     /* what the caller needs between the two steps, to enter the node; -EBADF = nothing */
};

/* First step, in a process that was cloned for it: closes every descriptor that is not named there, and puts the others where the second step finds
 * them; node is at SESSION_NODE then. 0 or -errno. */
[[nodiscard]] int rootless_session_prepare(const struct rootless_session *session);

/* Second step: becomes the monitor, starts the command, waits for it, and ends with its exit code, or 128 and the signal that ended it. */
[[noreturn]] void rootless_session_lead(const struct rootless_session *session);
