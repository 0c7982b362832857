/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - see session.h
 *
 * Theory of operation
 *   The monitor leads a session whose controlling terminal, if there is one, is the given
 *   pseudoterminal. The command is in a process group of its own. Since its parent is in the same
 *   session and another group, the kernel stops it like a shell's job (an orphaned group would
 *   ignore SIGTSTP), and the monitor reports that, so that the program outside can stop as well.
 *   A command that is not in the foreground at first (its output goes to a pipe, say) gets SIGTTIN
 *   or SIGTTOU when it accesses the terminal. The monitor reports it, and continues the command
 *   when the order arrives that grants the terminal.
 *   If the program outside dies, the pipe of orders closes; the command goes on unless it is bound.
 *   A terminal that hangs up ends it with SIGHUP.
 *   A bound command dies with its monitor, too. The monitor itself ignores SIGTERM, which a
 *   stopping node sends to all processes, so that it can report how the command ended.
 * Invariant  the command has no descriptor of the caller but the three streams. */
#include "rootless/node/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "sys/calls.h"

/* The monitor's descriptor numbers. */
enum {
        TERMINAL = SESSION_STREAMS,
        ORDERS,
        REPORTS,
        FAILURE,
        NODE,
        FIRST_UNUSED,
};
enum { ASIDE = 64 }; /* numbers from here on are free while descriptors are moved */
static_assert((int) NODE == (int) SESSION_NODE);

struct monitor {
        pid_t command;
        bool terminal;
        bool foreground;
        bool bound;
};

/* First move all descriptors out of the way: one may be at the number of another. */
int rootless_session_prepare(const struct rootless_session *s) {
        const int from[FIRST_UNUSED] = {s->streams[0], s->streams[1], s->streams[2], s->terminal,
                                        s->orders,     s->reports,    s->failure,    s->node};
        int aside[FIRST_UNUSED];

        for (int i = 0; i < FIRST_UNUSED; i++) {
                aside[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, ASIDE);
                if (from[i] >= 0 && aside[i] < 0)
                        return -errno;
        }
        for (int i = 0; i < FIRST_UNUSED; i++)
                if (aside[i] < 0)
                        (void) close(i);
                else if (dup3(aside[i], i, i < SESSION_STREAMS ? 0 : O_CLOEXEC) < 0)
                        return -errno;
        return close_range(FIRST_UNUSED, ~0U, 0) < 0 ? -errno : 0;
}

static void report_failure(int number) {
        (void) !write(FAILURE, &number, sizeof number);
}

static void reset_signals(void) {
        sigset_t none;

        (void) sigemptyset(&none);
        for (int n = 1; n < NSIG; n++)
                (void) signal(n, SIG_DFL);
        (void) sigprocmask(SIG_SETMASK, &none, nullptr);
}

/* The signal is lost if the monitor has died before; then we are a child of init. */
static void die_with_monitor(pid_t monitor) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != monitor)
                _exit(127);
}

[[noreturn]] static void execute(const struct rootless_session *s, const struct monitor *m, pid_t monitor) {
        (void) setpgid(0, 0);
        if (m->bound)
                die_with_monitor(monitor);
        if (m->foreground)
                (void) tcsetpgrp(TERMINAL, getpid()); /* SIGTTOU is still blocked */
        reset_signals();
        if (s->directory && chdir(s->directory) < 0)
                (void) !chdir("/");
        if (close_range(SESSION_STREAMS, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
                environ = (char **) s->environment;
                (void) execvp(s->argv[0], s->argv);
        }
        report_failure(errno);
        _exit(127);
}

/* ---- the monitor ---- */

static void report(enum rootless_session_report what) {
        char byte = (char) what;

        (void) !write(REPORTS, &byte, 1);
}

/* Returns the group that the terminal's keys signal. Without a terminal, or before the command has
 * it: the command's group. */
static pid_t foreground_group(const struct monitor *m) {
        pid_t group = m->terminal && m->foreground ? tcgetpgrp(TERMINAL) : -1;

        return group > 1 ? group : m->command;
}

static void handle_order(struct monitor *m, unsigned char order) {
        switch (order) {
        case SESSION_FOREGROUND:
                if (!m->terminal)
                        return;
                m->foreground = true;
                (void) tcsetpgrp(TERMINAL, m->command);
                (void) kill(-m->command, SIGCONT);
                return;
        case SIGINT:
        case SIGQUIT:
        case SIGTSTP:
        case SIGCONT:
                (void) kill(-foreground_group(m), order);
                return;
        default:
                if (order < NSIG)
                        (void) kill(m->command, order);
        }
}

/* Returns whether the command has ended; then *ret is our exit status. */
static bool reap(struct monitor *m, int *ret) {
        siginfo_t info = {};

        while (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
                if (info.si_pid != m->command)
                        continue;
                if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) {
                        *ret = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
                        return true;
                }
                if (info.si_code == CLD_STOPPED)
                        report(m->terminal && !m->foreground && (info.si_status == SIGTTIN || info.si_status == SIGTTOU)
                                       ? SESSION_TERMINAL
                                       : SESSION_STOPPED);
                info = (siginfo_t) {};
        }
        return false;
}

/* The kernel sends SIGHUP for a closed terminal only to the leader of the session. */
static void hang_up(const struct monitor *m) {
        (void) kill(-m->command, SIGHUP);
        (void) kill(-m->command, SIGCONT);
}

static void handle_signal(const struct monitor *m, int signals) {
        struct signalfd_siginfo signal;

        if (read(signals, &signal, sizeof signal) != sizeof signal)
                return;
        if (signal.ssi_signo == SIGHUP)
                hang_up(m);
        else if (signal.ssi_signo == SESSION_END)
                (void) kill(m->command, SIGTERM);
}

/* Returns false when the program outside has closed the pipe. */
static bool take_order(struct monitor *m) {
        unsigned char order;

        if (read(ORDERS, &order, 1) == 1) {
                handle_order(m, order);
                return true;
        }
        if (m->bound)
                (void) kill(m->command, SIGKILL);
        return false;
}

static int watch(struct monitor *m, int signals) {
        struct pollfd waits[] = {{.fd = signals, .events = POLLIN}, {.fd = ORDERS, .events = POLLIN}};
        int code = EXIT_FAILURE;

        while (!reap(m, &code)) {
                if (poll(waits, nd_count_of(waits), -1) < 0 && errno != EINTR)
                        return EXIT_FAILURE;
                if (waits[0].revents)
                        handle_signal(m, signals);
                if (waits[1].revents && !take_order(m))
                        waits[1].fd = -1;
        }
        return code;
}

/* Closes the streams in the monitor: the reader of a pipe must see EOF when the command closes
 * it. */
static void release_streams(void) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int i = 0; i < SESSION_STREAMS; i++)
                if (null < 0 || dup2(null, i) < 0)
                        (void) close(i);
        (void) close(null);
        (void) close(FAILURE);
}

void rootless_session_lead(const struct rootless_session *s) {
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        struct monitor m = {.terminal = s->terminal >= 0, .bound = s->bound};
        pid_t own = getpid();
        sigset_t mask;
        int signals, code;

        (void) setsid();
        (void) close(NODE);
        reset_signals();
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigaddset(&mask, SIGHUP);
        /* we change the foreground group from the background, too */
        (void) sigaddset(&mask, SIGTTOU);
        if (m.bound) {
                (void) sigaddset(&mask, SIGTERM);
                (void) sigaddset(&mask, SESSION_END);
        }
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        (void) signal(SIGPIPE, SIG_IGN);
        if (m.terminal && ioctl(TERMINAL, TIOCSCTTY, 0) < 0) {
                report_failure(errno);
                _exit(127);
        }
        m.foreground = m.terminal && s->foreground;
        m.command = nd_sys->clone3(&arguments, sizeof arguments);
        if (m.command == 0)
                execute(s, &m, own);
        if (m.command < 0) {
                report_failure(errno);
                _exit(127);
        }
        /* here as well: orders may arrive before the child runs */
        (void) setpgid(m.command, m.command);
        if (m.foreground)
                (void) tcsetpgrp(TERMINAL, m.command);
        release_streams();
        (void) sigdelset(&mask, SIGTTOU);
        signals = signalfd(-1, &mask, SFD_CLOEXEC);
        code = signals < 0 ? EXIT_FAILURE : watch(&m, signals);
        /* The kernel sends SIGHUP to the foreground group when the session's leader exits.
         * Processes that the command left running must survive, as they do without a terminal. */
        if (m.terminal)
                (void) tcsetpgrp(TERMINAL, getpgrp());
        _exit(code);
}
