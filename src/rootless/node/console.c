/* SPDX-License-Identifier: Apache-2.0 */
/* console.c - see console.h
 *
 * Theory of operation
 *   The command either has the terminal or not. While it has it (@foreground), our terminal is raw:
 *   every key goes to the pseudoterminal, whose own settings interpret it, ^C and ^Z included. A
 *   command whose standard input and output both are a terminal has it from the start. Another one
 *   (`run ... | less`, `echo | shell`) leaves the terminal and its keys to the other processes of
 *   the job. When it accesses the terminal it is stopped, the monitor reports that, and it gets the
 *   terminal then. Until then keys that send signals reach us, and we forward the signals.
 *   When the command stops, so do we: we restore the terminal and stop our whole job, as if it were
 *   the command. SIGCONT undoes both.
 *   In the background we do not touch the terminal. The kernel does not notify a running job when
 *   it moves to the foreground, so we poll.
 *   The pseudoterminal comes from the node's devpts, so the command finds its name. Root of the
 *   node may have put something else there: we use only the ptmx of a devpts, else one of the host.
 * Owns       the pseudoterminal and the pipes to the monitor.
 * Invariant  the terminal has its original settings while we are stopped and when we exit, also by
 * a signal that can be caught. */
#include "rootless/node/console.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/calls.h"

enum {
        PIECE = 16 << 10,
        /* limit of the final output: a process left behind may write endlessly */
        DRAIN_PIECES = 64,
        PTMX_MAJOR = 5,
        PTMX_MINOR = 2,
};

static constexpr uint64_t foreground_poll_us = 200 * ND_MS_US;
static constexpr uint64_t stop_timeout_us = ND_SECOND_US;

struct rootless_console {
        int streams[SESSION_STREAMS];
        int master, slave;             /* -EBADF = no stream is a terminal */
        int terminal;                  /* the caller's, for settings and input */
        int screen;                    /* the caller's, for output */
        bool own_terminal;             /* opened by us */
        int orders[2], reports[2];     /* read and write ends */
        bool foreground;               /* the command has the terminal */
        bool raw;                      /* the caller's terminal must be restored */
        bool held;                     /* signals are blocked; mask holds the previous mask */
        struct termios before, inside; /* the caller's settings, the command's settings */
        sigset_t mask;
        sd_event *loop;
        sd_event_source *input, *output, *report, *foreground_timer, *stop_timer;
        char queue[PIECE]; /* input that the pseudoterminal has not accepted yet */
        size_t queued;
};

/* ---- crash handler ---- */

static int crash_terminal = -EBADF;
static struct termios crash_settings;

static void on_crash(int number) {
        if (crash_terminal >= 0)
                (void) tcsetattr(crash_terminal, TCSANOW, &crash_settings);
        (void) raise(number); /* SA_RESETHAND: this terminates us */
}

static void prepare_crash(const struct rootless_console *c) {
        static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
        struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int) SA_RESETHAND | SA_NODEFER};

        crash_settings = c->before;
        crash_terminal = c->terminal;
        for (size_t i = 0; i < nd_count_of(numbers); i++)
                (void) sigaction(numbers[i], &action, nullptr);
}

/* ---- terminal settings ---- */

/* For a terminal that is not our controlling one, we always count as in the foreground. */
static bool in_foreground(const struct rootless_console *c) {
        pid_t group = tcgetpgrp(c->terminal);

        return group < 0 || group == getpgrp();
}

/* Blocks SIGTTOU: a background process may not change the settings, but must restore them. */
static void set_terminal(int fd, const struct termios *settings) {
        sigset_t block, before;

        (void) sigemptyset(&block);
        (void) sigaddset(&block, SIGTTOU);
        (void) sigprocmask(SIG_BLOCK, &block, &before);
        (void) tcsetattr(fd, TCSADRAIN, settings);
        (void) sigprocmask(SIG_SETMASK, &before, nullptr);
}

/* In the background the settings belong to the job in the foreground: leave them alone. */
static void restore_terminal(struct rootless_console *c) {
        if (c->raw && in_foreground(c))
                set_terminal(c->terminal, &c->before);
        c->raw = false;
}

static void take_size(struct rootless_console *c) {
        struct winsize size;

        if (c->master >= 0 && ioctl(c->screen, TIOCGWINSZ, &size) == 0)
                (void) ioctl(c->master, TIOCSWINSZ, &size);
}

static int on_foreground_poll(sd_event_source *source, uint64_t usec, void *userdata);

/* Takes the terminal if the command has it and we are in the foreground, else polls. A shell may
 * have restored it while we were stopped. */
static void take_terminal(struct rootless_console *c) {
        struct termios raw;

        if (!c->foreground)
                return;
        if (!in_foreground(c)) {
                if (!c->foreground_timer)
                        (void) sd_event_add_time_relative(c->loop, &c->foreground_timer, CLOCK_MONOTONIC, foreground_poll_us,
                                                          0, on_foreground_poll, c);
                return;
        }
        if (!c->raw)
                (void) tcgetattr(c->terminal, &c->before);
        raw = c->before;
        cfmakeraw(&raw);
        c->raw = tcsetattr(c->terminal, TCSADRAIN, &raw) == 0;
        prepare_crash(c);
        take_size(c);
        if (c->input && c->queued < sizeof c->queue)
                (void) sd_event_source_set_enabled(c->input, SD_EVENT_ON);
}

static int on_foreground_poll([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct rootless_console *c = userdata;

        c->foreground_timer = sd_event_source_disable_unref(c->foreground_timer);
        take_terminal(c);
        return 0;
}

/* ---- copying ---- */

static void flush(struct rootless_console *c) {
        ssize_t n = c->queued > 0 ? write(c->master, c->queue, c->queued) : 0;

        if (n > 0) {
                c->queued -= (size_t) n;
                memmove(c->queue, c->queue + n, c->queued);
        }
        (void) sd_event_source_set_io_events(c->output, c->queued > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
        if (c->input && c->raw)
                (void) sd_event_source_set_enabled(c->input, c->queued < sizeof c->queue ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int on_input(sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct rootless_console *c = userdata;
        ssize_t n;

        if (!c->raw || !in_foreground(c)) { /* reading would stop us */
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
                c->raw = false;
                take_terminal(c);
                return 0;
        }
        n = read(fd, c->queue + c->queued, sizeof c->queue - c->queued);
        if (n > 0)
                c->queued += (size_t) n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                /* the terminal hung up; SIGHUP follows */
                c->input = sd_event_source_disable_unref(c->input);
        flush(c);
        return 0;
}

/* Blocks while the terminal does. If the terminal hung up, drops the output; the command goes
 * on. */
static void write_screen(const struct rootless_console *c, const char *bytes, size_t length) {
        while (length > 0) {
                ssize_t n = write(c->screen, bytes, length);

                if (n < 0 && errno == EAGAIN)
                        (void) poll(&(struct pollfd) {.fd = c->screen, .events = POLLOUT}, 1, -1);
                else if (n < 0 && errno != EINTR)
                        return;
                if (n > 0) {
                        bytes += n;
                        length -= (size_t) n;
                }
        }
}

static bool copy_output(const struct rootless_console *c) {
        char piece[PIECE];
        ssize_t n = read(c->master, piece, sizeof piece);

        if (n > 0)
                write_screen(c, piece, (size_t) n);
        return n > 0;
}

static int on_output([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct rootless_console *c = userdata;

        if (events & EPOLLIN)
                (void) copy_output(c);
        if (c->queued > 0)
                flush(c);
        return 0;
}

void rootless_console_drain(struct rootless_console *c) {
        for (int i = 0; c->master >= 0 && i < DRAIN_PIECES && copy_output(c); i++)
                ;
}

/* ---- job control ---- */

static void send_order(const struct rootless_console *c, unsigned char byte) {
        /* an exited monitor has reported, or its exit will */
        (void) !write(c->orders[1], &byte, 1);
}

/* Stops until SIGCONT arrives. Does nothing in an orphaned process group, which the kernel does not
 * stop because no shell would continue it. */
static void stop_here(pid_t whom) {
        sigset_t set, before;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTSTP);
        (void) kill(whom, SIGTSTP);
        (void) sigprocmask(SIG_UNBLOCK, &set, &before);
        (void) sigprocmask(SIG_SETMASK, &before, nullptr);
}

static void stop_with_command(struct rootless_console *c) {
        /* If the terminal is not ours, its keys have already signalled the rest of the job. */
        bool whole = c->raw;

        c->stop_timer = sd_event_source_disable_unref(c->stop_timer);
        restore_terminal(c);
        stop_here(whole ? 0 : getpid());
        take_terminal(c);
        send_order(c, SIGCONT);
}

static int on_stop_timeout([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        stop_with_command(userdata);
        return 0;
}

/* Stops the command and us. The monitor's report stops us; a timeout does it for a command that
 * ignores the signal. */
static void stop_both(struct rootless_console *c) {
        send_order(c, SIGTSTP);
        if (!c->stop_timer)
                (void) sd_event_add_time_relative(c->loop, &c->stop_timer, CLOCK_MONOTONIC, stop_timeout_us, 0,
                                                  on_stop_timeout, c);
}

static void give_terminal(struct rootless_console *c) {
        c->foreground = true;
        (void) tcsetattr(c->slave, TCSANOW, &c->before);
        take_terminal(c);
        send_order(c, SESSION_FOREGROUND);
}

static int on_report([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct rootless_console *c = userdata;
        char what = 0;
        ssize_t n = read(fd, &what, 1);

        if (n == 0)
                c->report = sd_event_source_disable_unref(c->report);
        else if (n == 1 && what == SESSION_STOPPED)
                stop_with_command(c);
        else if (n == 1 && what == SESSION_TERMINAL && c->master >= 0)
                give_terminal(c);
        return 0;
}

static int on_signal([[maybe_unused]] sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        struct rootless_console *c = userdata;

        switch (si->ssi_signo) {
        case SIGWINCH:
                take_size(c);
                break;
        case SIGCONT:
                take_terminal(c);
                send_order(c, SIGCONT);
                break;
        case SIGTSTP:
                stop_both(c);
                break;
        default:
                send_order(c, (unsigned char) si->ssi_signo);
        }
        return 0;
}

static const int watched[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

void rootless_console_block_signals(struct rootless_console *c) {
        sigset_t set;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < nd_count_of(watched); i++)
                (void) sigaddset(&set, watched[i]);
        (void) sigprocmask(SIG_BLOCK, &set, c->held ? nullptr : &c->mask);
        c->held = true;
}

/* ---- beginning and end ---- */

static struct nd_error *check_stream(int stream) {
        struct stat st;

        if (fstat(stream, &st) < 0)
                return nd_error_new(ND_INVALID, errno, "standard stream %d is closed", stream);
        if (S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
                return nd_error_new(ND_INVALID, 0, "standard stream %d is a %s, which would give the node access to the host",
                                    stream, S_ISDIR(st.st_mode) ? "directory" : "block device");
        return nullptr;
}

static bool is_ptmx(int fd) {
        struct statfs fs;
        struct stat st;

        return fstatfs(fd, &fs) == 0 && fs.f_type == DEVPTS_SUPER_MAGIC && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
               major(st.st_rdev) == PTMX_MAJOR && minor(st.st_rdev) == PTMX_MINOR;
}

/* Opens the ptmx of the node's devpts. Checks that it is one before opening it. */
static int open_master(int root) {
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        nd_autoclose int place = root < 0 ? -EBADF : nd_sys->openat2(root, "dev/pts/ptmx", &how, sizeof how);
        char path[32];
        int fd = -EBADF;

        if (place >= 0 && is_ptmx(place)) {
                (void) snprintf(path, sizeof path, "/proc/self/fd/%d", place);
                fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        }
        if (fd < 0)
                fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        return fd;
}

static struct nd_error *make_terminal(struct rootless_console *c, int root) {
        c->master = open_master(root);
        if (c->master < 0 || ioctl(c->master, TIOCSPTLCK, &(int) {0}) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pseudoterminal for the node");
        c->slave = ioctl(c->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (c->slave < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open the node's side of a pseudoterminal");
        return nullptr;
}

/* Chooses the descriptors of the caller's terminal: a readable one and a writable one. */
static void find_terminal(struct rootless_console *c, const bool terminals[SESSION_STREAMS]) {
        for (int i = SESSION_STREAMS - 1; i >= 0; i--) {
                int access_mode = terminals[i] ? fcntl(i, F_GETFL) & O_ACCMODE : -1;

                if (access_mode == O_RDWR || access_mode == O_RDONLY)
                        c->terminal = i;
        }
        c->screen = terminals[1] ? 1 : terminals[2] ? 2 : 0;
        if (c->terminal < 0) {
                c->terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
                c->own_terminal = c->terminal >= 0;
        }
        if (c->terminal < 0)
                c->terminal = c->screen; /* without a readable one there is no input */
}

/* Until the command has the terminal, ours does echo and newline translation: they must not be done
 * twice. */
static void set_inside(struct rootless_console *c) {
        (void) tcgetattr(c->terminal, &c->before);
        c->inside = c->before;
        if (!c->foreground) {
                c->inside.c_lflag &= ~(tcflag_t) (ECHO | ECHONL);
                c->inside.c_oflag &= ~(tcflag_t) OPOST;
        }
        (void) tcsetattr(c->slave, TCSANOW, &c->inside);
        take_size(c);
}

struct nd_error *rootless_console_new(int root, struct rootless_console **ret) {
        nd_cleanup(rootless_console_done) struct rootless_console *c = nd_new(struct rootless_console);
        bool terminals[SESSION_STREAMS];

        c->master = c->slave = c->terminal = -EBADF;
        c->orders[0] = c->orders[1] = c->reports[0] = c->reports[1] = -EBADF;
        for (int i = 0; i < SESSION_STREAMS; i++) {
                nd_try(check_stream(i));
                terminals[i] = isatty(i);
                c->streams[i] = i;
        }
        if (nd_sys->pipe2(c->orders, O_CLOEXEC) < 0 || nd_sys->pipe2(c->reports, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe");
        if (terminals[0] || terminals[1] || terminals[2]) {
                nd_try(make_terminal(c, root));
                find_terminal(c, terminals);
                c->foreground = terminals[0] && terminals[1];
                set_inside(c);
                for (int i = 0; i < SESSION_STREAMS; i++)
                        if (terminals[i])
                                c->streams[i] = c->slave;
        }
        *ret = nd_take_ptr(c);
        return nullptr;
}

struct nd_error *rootless_console_open(const struct rootless_node_record *record, struct rootless_console **ret) {
        nd_autofree char *path = nd_format("/proc/%d/root", (int) record->pid);
        nd_autoclose int root = nd_sys->openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);

        return rootless_console_new(root, ret);
}

void rootless_console_session(const struct rootless_console *c, struct rootless_session *ret) {
        memcpy(ret->streams, c->streams, sizeof ret->streams);
        ret->terminal = c->slave;
        ret->foreground = c->foreground;
        ret->orders = c->orders[0];
        ret->reports = c->reports[1];
}

struct nd_error *rootless_console_start(struct rootless_console *c, sd_event *loop) {
        int r;

        c->loop = sd_event_ref(loop);
        nd_close_fd(&c->orders[0]);
        nd_close_fd(&c->reports[1]);
        (void) fcntl(c->orders[1], F_SETFL, O_NONBLOCK);
        (void) fcntl(c->reports[0], F_SETFL, O_NONBLOCK);
        (void) signal(SIGPIPE, SIG_IGN);
        rootless_console_block_signals(c);
        r = sd_event_add_io(loop, &c->report, c->reports[0], EPOLLIN, on_report, c);
        for (size_t i = 0; r >= 0 && i < nd_count_of(watched); i++)
                r = sd_event_add_signal(loop, nullptr, watched[i], on_signal, c);
        if (r >= 0 && c->master >= 0)
                r = sd_event_add_io(loop, &c->output, c->master, EPOLLIN, on_output, c);
        if (r >= 0 && c->master >= 0) {
                r = sd_event_add_io(loop, &c->input, c->terminal, EPOLLIN, on_input, c);
                if (r >= 0)
                        r = sd_event_source_set_enabled(c->input, SD_EVENT_OFF);
                take_terminal(c);
        }
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "watch the terminal's events") : nullptr;
}

void rootless_console_free(struct rootless_console *c) {
        if (!c)
                return;
        restore_terminal(c);
        crash_terminal = -EBADF;
        sd_event_source_disable_unref(c->input);
        sd_event_source_disable_unref(c->output);
        sd_event_source_disable_unref(c->report);
        sd_event_source_disable_unref(c->foreground_timer);
        sd_event_source_disable_unref(c->stop_timer);
        sd_event_unref(c->loop);
        nd_close_fd(&c->master);
        nd_close_fd(&c->slave);
        for (int i = 0; i < 2; i++) {
                nd_close_fd(&c->orders[i]);
                nd_close_fd(&c->reports[i]);
        }
        if (c->own_terminal)
                nd_close_fd(&c->terminal);
        if (c->held)
                (void) sigprocmask(SIG_SETMASK, &c->mask, nullptr);
        free(c);
}
