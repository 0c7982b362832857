/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - a command in the node: a session of its own, and a monitor that leads it
 *
 * The monitor is the command's parent and lives in the node. It reports the command's state to the
 * program outside in single bytes and takes single bytes as orders. Both channels are pipes, since
 * a socket would reveal its peer's credentials to the node. */
#pragma once

enum rootless_session_report {
        SESSION_STOPPED = 'S',  /* the command was stopped, e.g. by ^Z */
        SESSION_TERMINAL = 'T', /* the command needs the terminal and is stopped until it gets it */
};

enum {
        /* an order: the command gets the terminal; any other byte is a signal for it */
        SESSION_FOREGROUND = 255,
        SESSION_STREAMS = 3,
        SESSION_NODE = 7, /* a descriptor number */
};

/* Signal to the monitor of a bound command: it sends SIGTERM to the command. */
#define SESSION_END SIGUSR1

struct rootless_session {
        char *const *argv;
        char *const *environment;
        const char *directory;        /* working directory; ignored if the node does not have it */
        int streams[SESSION_STREAMS]; /* none of them is the caller's terminal */
        /* slave of our pseudoterminal, the controlling terminal; -EBADF = none */
        int terminal;
        bool foreground; /* the command has the terminal from the start */
        /* The command ends with the program outside: SIGKILL when the pipe of orders closes. Init
         * ends it alone with SESSION_END. */
        bool bound;
        int orders, reports; /* pipes: read by the monitor, written by the monitor */
        int failure;         /* a pipe: gets an errno if execve() fails, else closes */
        /* descriptor that the caller needs to enter the node between the two steps; -EBADF =
         * none */
        int node;
};

/* First step, in a process cloned for it: closes every descriptor that is not named in the session
 * and moves the others where the second step expects them; node is at SESSION_NODE then. Returns 0
 * or -errno. */
[[nodiscard]] int rootless_session_prepare(const struct rootless_session *session);

/* Second step: becomes the monitor, starts the command, waits for it and exits with its exit
 * status, or 128 plus the signal that killed it. */
[[noreturn]] void rootless_session_lead(const struct rootless_session *session);
