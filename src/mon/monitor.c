/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - see monitor.h
 *
 * Theory of operation
 *   One loop of poll() over a dozen descriptors and no memory that grows. We are the subreaper of all that the engine starts, so the container's first
 *   process becomes our child when the engine's `create` has ended, and its exit code is ours to collect whatever becomes of the daemon.
 *   @ND_MONITOR_CREATING until the engine ends or its deadline passes; with pipes its words come on the container's standard error, which
 *   nothing else can write to before the container is started. Then @ND_MONITOR_CREATED: rights are given up (confine.h), and output goes to the log as it comes. When the first process
 *   ends, what the pipes hold goes to the log, the record is written, and everybody connected is told: whoever knows of the end finds the log
 *   complete. Processes that outlived it may hold the pipes; we stay for them, but not for ever. Those who are attached: attach.h.
 * Invariant  nothing but a write to the log can block, and the log is a plain file. The record is written before anybody is told. */
#include "mon/monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "mon/confine.h"
#include "mon/record.h"
#include "sys/calls.h"

enum {
        DRAIN = 1024 * 1024, /* most bytes of a stream that the container's end waits for */
        LINGER_S = 10,       /* how long we stay for processes that outlived the container's first one */
        WATCHES = 9 + (2 + ATTACH_OUTPUTS) * CONTROL_CONNECTIONS,
};

/* What the loop waits for, made anew in each turn: there are few, and none can be forgotten. */
struct watch {
        void (*run)(struct monitor *monitor, size_t which);
        size_t which;
};

struct turn {
        struct pollfd polls[WATCHES];
        struct watch watches[WATCHES];
        nfds_t count;
};

static void turn_add(struct turn *turn, int fd, short events, void (*run)(struct monitor *, size_t), size_t which) {
        if (fd < 0)
                return;
        turn->polls[turn->count] = (struct pollfd) {.fd = fd, .events = events};
        turn->watches[turn->count++] = (struct watch) {.run = run, .which = which};
}

/* ---- before the container is there ---- */

struct nd_error *monitor_prepare(const struct settings *settings, int first, struct monitor *monitor) {
        sigset_t all, children;

        monitor->settings = settings;
        /* Field by field: assigning a whole stream would write to the buffer's pages, which most monitors never need. */
        monitor->out.name = "stdout";
        monitor->errors.name = "stderr";
        monitor->errors.number = 1;
        monitor->out.fd = monitor->errors.fd = monitor->in = monitor->words_fd = -EBADF;
        monitor->console = CONSOLE_NONE;
        monitor->log = LOG_NONE;
        monitor->oom = OOM_NONE;

        /* Whoever wants a monitor to go ends its container, or kills. */
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, nullptr);
        (void) sigemptyset(&children);
        (void) sigaddset(&children, SIGCHLD);
        monitor->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
        if (monitor->signals < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "listen for children");
        monitor->directory = open(settings->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (monitor->directory < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "open '%s'", settings->directory);
        attach_begin(&monitor->attach, &monitor->control);
        nd_try(record_make(monitor->directory, &monitor->record));
        return control_open(monitor->directory, first, &monitor->control);
}

/* Their ends of the streams are closed again by the caller once the engine has them. */
static struct nd_error *make_streams(struct monitor *monitor, struct create_streams *theirs) {
        const struct settings *settings = monitor->settings;

        if (settings->terminal) {
                nd_try(stream_console_listen(monitor->directory, "console", &monitor->console));
                nd_try(stream_pipe_out(0, 0, &monitor->words_fd, &theirs->errors));
                theirs->in = open("/dev/null", O_RDWR | O_CLOEXEC);
                theirs->out = fcntl(theirs->in, F_DUPFD_CLOEXEC, 0);
                return theirs->out < 0 ? nd_error_new(nd_code_of_errno(errno), errno, "open '/dev/null'") : nullptr;
        }
        nd_try(stream_pipe_out(settings->uid, settings->gid, &monitor->out.fd, &theirs->out));
        nd_try(stream_pipe_out(settings->uid, settings->gid, &monitor->errors.fd, &theirs->errors));
        if (settings->stdin_open)
                return stream_pipe_in(settings->uid, settings->gid, &monitor->in, &theirs->in);
        theirs->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return theirs->in < 0 ? nd_error_new(nd_code_of_errno(errno), errno, "open '/dev/null'") : nullptr;
}

static struct nd_error *begin(struct monitor *monitor) {
        const struct settings *settings = monitor->settings;
        struct create_streams theirs = {.in = -EBADF, .out = -EBADF, .errors = -EBADF};
        struct nd_error *error;

        (void) prctl(PR_SET_CHILD_SUBREAPER, 1); /* here, for a fork forgets it */
        error = log_open(settings->log_directory, settings->log_path, &monitor->log);
        if (!error)
                error = make_streams(monitor, &theirs);
        if (!error)
                error = create_start(settings->create, &theirs, &monitor->engine);
        nd_close_fd(&theirs.in);
        nd_close_fd(&theirs.out);
        nd_close_fd(&theirs.errors);
        if (!error && settings->deadline_ms > 0)
                monitor->deadline = nd_clock_us() + settings->deadline_ms * ND_MS_US;
        return error;
}

static void fail(struct monitor *monitor, int error_number, const char *words, size_t length) {
        monitor->state.phase = ND_MONITOR_FAILED;
        record_write(monitor->record, &monitor->state);
        control_tell(&monitor->control,
                     &(struct nd_monitor_message) {
                             .letter = ND_MONITOR_IS_FAILED, .error_number = error_number, .words = words, .length = length});
}

static void take_terminal(struct monitor *monitor, [[maybe_unused]] size_t which) {
        int fd = stream_console_take(&monitor->console);

        if (fd < 0)
                return;
        monitor->out.fd = fd;
        monitor->in = monitor->settings->stdin_open ? fd : -EBADF;
}

/* `create` has succeeded: its child is ours now. */
static void become_created(struct monitor *monitor, pid_t pid) {
        nd_autoerror struct nd_error *error = nullptr;
        const char *words;
        size_t length;

        take_terminal(monitor, 0); /* it may have come in the same turn */
        stream_console_done(&monitor->console);
        monitor->state = (struct nd_monitor_record) {
                .phase = ND_MONITOR_CREATED, .pid = pid, .birth = create_birth(pid), .oom_kills = -1};
        monitor->deadline = 0;
        oom_watch(&monitor->oom, pid);
        error = confine(&monitor->log); /* from here on we read what a stranger writes */
        if (error) {
                fail(monitor, nd_error_errno(error), nd_error_text(error), strlen(nd_error_text(error)));
                return;
        }
        record_write(monitor->record, &monitor->state);
        words = words_last(&monitor->words, &length);
        control_tell(&monitor->control,
                     &(struct nd_monitor_message) {.letter = ND_MONITOR_IS_CREATED, .words = words, .length = length});
}

/* It has become ours with the engine's end. If not, the engine has seen it die already, and there is no end to wait for. */
static bool is_our_child(pid_t pid) {
        siginfo_t child;

        return waitid(P_PID, (id_t) pid, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void engine_ended(struct monitor *monitor, int status) {
        static const char late[] = "it did not end in time and was killed", silent[] = "it said nothing",
                          no_pid[] = "it wrote no pid",
                          dead[] = "the container's first process died before it could be started";
        bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        pid_t pid = well ? create_pid(monitor->directory, "pid") : 0;
        const char *words;
        size_t length;

        monitor->engine = 0;
        words_read(&monitor->words, monitor->settings->terminal ? monitor->words_fd : monitor->errors.fd);
        nd_close_fd(&monitor->words_fd);
        (void) nd_sys->unlinkat(monitor->directory, "pid", 0);
        (void) nd_sys->unlinkat(monitor->directory, "console", 0);
        if (pid > 0 && is_our_child(pid)) {
                become_created(monitor, pid);
                return;
        }
        words = words_last(&monitor->words, &length);
        if (monitor->late)
                fail(monitor, ETIMEDOUT, late, sizeof late - 1);
        else if (length > 0)
                fail(monitor, 0, words, length);
        else if (pid > 0)
                fail(monitor, 0, dead, sizeof dead - 1);
        else if (well)
                fail(monitor, 0, no_pid, sizeof no_pid - 1);
        else
                fail(monitor, 0, silent, sizeof silent - 1);
}

/* ---- while it is there ---- */

static void container_ended(struct monitor *monitor, int status) {
        monitor->state.phase = ND_MONITOR_EXITED;
        monitor->state.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        monitor->state.at = nd_clock_wall_ns();
        oom_read(&monitor->oom);
        monitor->state.oom_kills = monitor->oom.kills;
        stream_drain(&monitor->out, DRAIN, &monitor->log, &monitor->attach);
        stream_drain(&monitor->errors, DRAIN, &monitor->log, &monitor->attach);
        monitor->state.lost = monitor->log.lost;
        record_write(monitor->record, &monitor->state);
        control_tell(&monitor->control, &(struct nd_monitor_message) {.letter = ND_MONITOR_IS_EXITED});
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                attach_forget(&monitor->attach, i);
        monitor->deadline = nd_clock_us() + LINGER_S * ND_SECOND_US;
}

/* Looks before it reaps: the container's first process may have ended in the same moment as the engine, and we must know its number by then. */
static void reap(struct monitor *monitor, [[maybe_unused]] size_t which) {
        struct signalfd_siginfo ignored;
        siginfo_t child = {};
        int status = 0;

        while (read(monitor->signals, &ignored, sizeof ignored) > 0)
                ;
        while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid > 0) {
                if (waitpid(child.si_pid, &status, 0) != child.si_pid)
                        return;
                if (child.si_pid == monitor->engine)
                        engine_ended(monitor, status);
                else if (monitor->state.phase == ND_MONITOR_CREATED && child.si_pid == monitor->state.pid)
                        container_ended(monitor, status);
                child.si_pid = 0;
        }
}

static void read_output(struct monitor *monitor, size_t which) {
        struct stream *stream = which == 0 ? &monitor->out : &monitor->errors;
        size_t most = attach_room(&monitor->attach, which, sizeof stream->buffer.bytes, nd_clock_us());

        if (most > 0)
                (void) stream_read(stream, most, &monitor->log, &monitor->attach);
}

static void release_output(struct monitor *monitor, size_t connection) {
        attach_release(&monitor->attach, connection, nd_clock_us());
}

static void close_input(struct monitor *monitor) {
        if (monitor->settings->terminal)
                monitor->in = -EBADF; /* it is the output, too */
        else
                nd_close_fd(&monitor->in);
}

static void write_input(struct monitor *monitor, [[maybe_unused]] size_t which) {
        if (monitor->in >= 0 && !attach_write_input(&monitor->attach, monitor->in))
                close_input(monitor);
}

static void read_input(struct monitor *monitor, size_t connection) {
        if (monitor->attach.length > 0)
                return; /* another client was first in this turn */
        attach_read_input(&monitor->attach, connection);
        write_input(monitor, 0);
}

/* The input of a container that wants it once ends with its first client's. Where there is none, or no more, clients are told by the end of theirs. */
static void settle_input(struct monitor *monitor) {
        bool once = monitor->settings->stdin_once && !monitor->settings->terminal;

        if (monitor->settings->terminal && monitor->out.fd < 0)
                monitor->in = -EBADF;
        if (once && monitor->attach.input_over && monitor->attach.length == 0)
                close_input(monitor);
        if (monitor->in < 0)
                attach_end_input(&monitor->attach);
}

static void count_kills(struct monitor *monitor, [[maybe_unused]] size_t which) {
        oom_read(&monitor->oom);
}

static void take_connection(struct monitor *monitor, [[maybe_unused]] size_t which) {
        control_accept(&monitor->control);
}

static void reopen_log(struct monitor *monitor, size_t connection) {
        int r = log_reopen(&monitor->log);
        struct nd_monitor_message answer = {.letter = ND_MONITOR_REOPENED, .error_number = -r};

        if (r < 0) {
                answer.words = strerrordesc_np(-r) ?: "it cannot be opened";
                answer.length = strlen(answer.words);
        }
        control_answer(&monitor->control, connection, &answer);
}

static void attach(struct monitor *monitor, size_t connection, unsigned streams, struct control_gift *gift) {
        if (monitor->state.phase != ND_MONITOR_CREATED) {
                control_answer(&monitor->control, connection,
                               &(struct nd_monitor_message) {.letter = ND_MONITOR_ATTACHED, .error_number = ESRCH});
                return;
        }
        attach_take(&monitor->attach, connection, streams, gift);
        if (monitor->out.fd < 0)
                attach_end_output(&monitor->attach, 0);
        if (monitor->errors.fd < 0)
                attach_end_output(&monitor->attach, 1);
}

static void read_message(struct monitor *monitor, size_t connection) {
        nd_cleanup(control_gift_done) struct control_gift gift;
        struct nd_monitor_message message;
        bool known = control_receive(&monitor->control, connection, &message, &gift);

        if (monitor->control.connections[connection] < 0)
                attach_forget(&monitor->attach, connection);
        if (!known)
                return;
        if (message.letter == ND_MONITOR_ATTACH)
                attach(monitor, connection, message.streams, &gift);
        if (message.letter == ND_MONITOR_REOPEN)
                reopen_log(monitor, connection);
        else if (message.letter == ND_MONITOR_RESIZE && monitor->settings->terminal && monitor->out.fd >= 0)
                (void) ioctl(monitor->out.fd, TIOCSWINSZ,
                             &(struct winsize) {.ws_row = message.rows, .ws_col = message.columns});
}

/* ---- the loop ---- */

/* While clients hold it up they are waited for instead. */
static void watch_output(const struct monitor *monitor, struct turn *turn, const struct stream *stream) {
        bool held = false;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                int fd = attach_held(&monitor->attach, i, stream->number);

                turn_add(turn, fd, POLLOUT, release_output, i);
                held = held || fd >= 0;
        }
        if (!held)
                turn_add(turn, stream->fd, POLLIN, read_output, stream->number);
}

static void watch_input(const struct monitor *monitor, struct turn *turn) {
        if (monitor->in < 0)
                return;
        if (monitor->attach.length > 0) {
                turn_add(turn, monitor->in, POLLOUT, write_input, 0);
                return;
        }
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                turn_add(turn, monitor->attach.clients[i].in, POLLIN, read_input, i);
}

static void turn_begin(struct monitor *monitor, struct turn *turn) {
        bool creating = monitor->state.phase == ND_MONITOR_CREATING;

        turn->count = 0;
        turn_add(turn, monitor->signals, POLLIN, reap, 0);
        turn_add(turn, monitor->control.listener, POLLIN, take_connection, 0);
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                turn_add(turn, monitor->control.connections[i], POLLIN, read_message, i);
        if (creating) {
                turn_add(turn, monitor->console.listener, POLLIN, take_terminal, 0);
                turn_add(turn, monitor->console.connection, POLLIN, take_terminal, 0);
                return;
        }
        watch_output(monitor, turn, &monitor->out);
        watch_output(monitor, turn, &monitor->errors);
        watch_input(monitor, turn);
        turn_add(turn, monitor->oom.fd, POLLPRI, count_kills, 0);
}

/* Milliseconds to wait; -1 = for ever. */
static int time_left(const struct monitor *monitor) {
        uint64_t time = nd_clock_us(), deadline = monitor->deadline, clients = attach_deadline(&monitor->attach);

        if (clients != 0 && (deadline == 0 || clients < deadline))
                deadline = clients;
        if (deadline == 0)
                return -1;
        return deadline <= time ? 0 : (int) ((deadline - time) / ND_MS_US + 1);
}

/* `create` has a deadline, and the stay after the end, and those who are attached. */
static void pass_deadline(struct monitor *monitor) {
        attach_pass_deadline(&monitor->attach, nd_clock_us());
        if (monitor->deadline == 0 || nd_clock_us() < monitor->deadline)
                return;
        if (monitor->engine > 0) {
                monitor->late = true;
                monitor->deadline = 0;
                (void) kill(-monitor->engine, SIGKILL);
                (void) kill(monitor->engine, SIGKILL); /* it may not have become the leader yet */
                return;
        }
        nd_close_fd(&monitor->out.fd);
        nd_close_fd(&monitor->errors.fd);
}

static bool is_over(const struct monitor *monitor) {
        if (monitor->state.phase == ND_MONITOR_FAILED)
                return true;
        return monitor->state.phase == ND_MONITOR_EXITED && monitor->out.fd < 0 && monitor->errors.fd < 0;
}

void monitor_run(struct monitor *monitor) {
        nd_autoerror struct nd_error *error = begin(monitor);
        struct turn turn = {};

        if (error) {
                const char *words = nd_error_text(error);

                fail(monitor, nd_error_errno(error), words, strlen(words));
                return;
        }
        while (!is_over(monitor)) {
                turn_begin(monitor, &turn);
                if (poll(turn.polls, turn.count, time_left(monitor)) < 0)
                        continue;
                for (nfds_t i = 0; i < turn.count; i++)
                        if (turn.polls[i].revents != 0)
                                turn.watches[i].run(monitor, turn.watches[i].which);
                settle_input(monitor);
                pass_deadline(monitor);
        }
}
