/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - see monitor.h
 *
 * Theory of operation
 *   One poll() loop over a dozen descriptors, with no memory that grows. We are the subreaper of
 *   everything that the OCI runtime starts: the container's first process becomes our child when
 *   `create` has exited, so we collect its exit status even if the daemon is gone.
 *   @ND_MONITOR_CREATING until `create` exits or its timeout expires. With pipes its error messages
 *   arrive on the container's standard error, which nothing else can write to before the container
 *   is started. Then @ND_MONITOR_CREATED: privileges are dropped (confine.h), and output is copied
 *   to the log. When the first process exits, we copy what the pipes hold to the log, write the
 *   record and notify all connections: a client that knows of the exit finds a complete log.
 *   Processes that outlive the first one may hold the pipes; we wait for them, but not longer than
 *   @linger_us. Attached clients: attach.h.
 * Invariant  nothing but a write to the log can block, and the log is a regular file. The record is
 * written before the exit is reported. */
#include "mon/monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/clock.h"
#include "mon/confine.h"
#include "mon/record.h"
#include "sys/calls.h"
#include "sys/file.h"

enum {
        DRAIN = 1024 * 1024, /* limit per stream of what is drained at the container's exit */
        WATCHES = 9 + (2 + ATTACH_OUTPUTS) * CONTROL_CONNECTIONS,
};

/* How long to wait for processes that outlive the container's first one. */
static constexpr uint64_t linger_us = 10 * ND_SECOND_US;

/* Rebuilt in each iteration: the descriptors are few, and none can be forgotten. */
struct watch {
        void (*run)(struct mon_monitor *monitor, size_t which);
        size_t which;
};

struct poll_set {
        struct pollfd polls[WATCHES];
        struct watch watches[WATCHES];
        nfds_t count;
};

static void poll_add(struct poll_set *set, int fd, short events, void (*run)(struct mon_monitor *, size_t), size_t which) {
        if (fd < 0)
                return;
        nd_assert(set->count < WATCHES);
        set->polls[set->count] = (struct pollfd) {.fd = fd, .events = events};
        set->watches[set->count++] = (struct watch) {.run = run, .which = which};
}

/* ---- before the container exists ---- */

struct nd_error *mon_monitor_prepare(const struct mon_settings *settings, int first, int mount_namespace,
                                     struct mon_monitor *monitor) {
        sigset_t all, children;

        monitor->settings = settings;
        /* Field by field: assigning a whole stream would touch the buffer's pages, which most
         * monitors never use. */
        monitor->out.name = "stdout";
        monitor->errors.name = "stderr";
        monitor->errors.number = 1;
        monitor->out.fd = monitor->errors.fd = monitor->in = monitor->stderr_fd = -EBADF;
        monitor->console = CONSOLE_NONE;
        monitor->log = LOG_NONE;
        monitor->oom = OOM_NONE;
        monitor->mount_namespace = mount_namespace;

        /* All signals but SIGCHLD are blocked: it exits with its container, or by SIGKILL. */
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, nullptr);
        (void) sigemptyset(&children);
        (void) sigaddset(&children, SIGCHLD);
        monitor->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
        if (monitor->signals < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a signalfd for SIGCHLD");
        monitor->directory = open(settings->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (monitor->directory < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", settings->directory);
        mon_attach_init(&monitor->attach, &monitor->control);
        nd_try(mon_record_create(monitor->directory, &monitor->record));
        return mon_control_open(monitor->directory, first, &monitor->control);
}

/* The caller closes the container's ends of the streams once the OCI runtime has inherited them. */
static struct nd_error *make_streams(struct mon_monitor *monitor, struct mon_create_streams *theirs) {
        const struct mon_settings *settings = monitor->settings;

        if (settings->terminal) {
                nd_try(mon_console_listen(monitor->directory, "console", &monitor->console));
                nd_try(mon_stream_pipe_out(0, 0, &monitor->stderr_fd, &theirs->errors));
                nd_try(nd_file_open_null(O_RDWR, &theirs->in));
                theirs->out = fcntl(theirs->in, F_DUPFD_CLOEXEC, 0);
                return theirs->out < 0 ? nd_error_new(nd_error_code_of(errno), errno, "open '/dev/null'") : nullptr;
        }
        nd_try(mon_stream_pipe_out(settings->uid, settings->gid, &monitor->out.fd, &theirs->out));
        nd_try(mon_stream_pipe_out(settings->uid, settings->gid, &monitor->errors.fd, &theirs->errors));
        if (settings->stdin_open)
                return mon_stream_pipe_in(settings->uid, settings->gid, &monitor->in, &theirs->in);
        return nd_file_open_null(O_RDONLY, &theirs->in);
}

static struct nd_error *begin(struct mon_monitor *monitor) {
        const struct mon_settings *settings = monitor->settings;
        struct mon_create_streams theirs = {.in = -EBADF, .out = -EBADF, .errors = -EBADF};
        struct nd_error *error;

        (void) prctl(PR_SET_CHILD_SUBREAPER, 1); /* here because fork() clears it */
        error = mon_log_open(settings->log_directory, settings->log_path, &monitor->log);
        if (!error)
                error = make_streams(monitor, &theirs);
        if (!error)
                error = mon_create_start(settings->create, &theirs, monitor->mount_namespace, &monitor->runtime_pid);
        nd_close_fd(&monitor->mount_namespace); /* it ends with the OCI runtime */
        nd_close_fd(&theirs.in);
        nd_close_fd(&theirs.out);
        nd_close_fd(&theirs.errors);
        if (!error && settings->deadline_ms > 0)
                monitor->deadline = nd_clock_us() + settings->deadline_ms * ND_MS_US;
        return error;
}

static void fail(struct mon_monitor *monitor, int error_number, const char *words, size_t length) {
        monitor->state.phase = ND_MONITOR_FAILED;
        mon_record_write(monitor->record, &monitor->state);
        mon_control_broadcast(&monitor->control, &(struct nd_monitor_message) {.letter = ND_MONITOR_IS_FAILED,
                                                                               .error_number = error_number,
                                                                               .words = words,
                                                                               .length = length});
}

static void receive_terminal(struct mon_monitor *monitor, [[maybe_unused]] size_t which) {
        int fd = mon_console_receive(&monitor->console);

        if (fd < 0)
                return;
        monitor->out.fd = fd;
        monitor->in = monitor->settings->stdin_open ? fd : -EBADF;
}

/* `create` has succeeded: its child is now ours. */
static void finish_create(struct mon_monitor *monitor, pid_t pid) {
        nd_autoerror struct nd_error *error = nullptr;
        const char *words;
        size_t length;

        receive_terminal(monitor, 0); /* it may have arrived in the same iteration */
        mon_console_done(&monitor->console);
        monitor->state = (struct nd_monitor_record) {
                .phase = ND_MONITOR_CREATED, .pid = pid, .birth = mon_create_start_time(pid), .oom_kills = -1};
        monitor->deadline = 0;
        mon_oom_watch(&monitor->oom, pid);
        error = mon_confine(&monitor->log); /* from here on we read untrusted output */
        if (error) {
                fail(monitor, nd_error_errno(error), nd_error_text(error), strlen(nd_error_text(error)));
                return;
        }
        mon_record_write(monitor->record, &monitor->state);
        words = mon_stderr_tail_last_line(&monitor->stderr_tail, &length);
        mon_control_broadcast(&monitor->control, &(struct nd_monitor_message) {
                                                         .letter = ND_MONITOR_IS_CREATED, .words = words, .length = length});
}

/* The child becomes ours when the OCI runtime exits. Otherwise the OCI runtime has already reaped
 * it, and there is no exit to wait for. */
static bool is_our_child(pid_t pid) {
        siginfo_t child;

        return waitid(P_PID, (id_t) pid, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void runtime_exited(struct mon_monitor *monitor, int status) {
        static const char timed_out[] = "it did not end in time and was killed", silent[] = "it reported no error",
                          no_pid[] = "it wrote no PID file",
                          dead[] = "the container's first process died before it could be started";
        bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        pid_t pid = well ? mon_create_read_pid(monitor->directory, "pid") : 0;
        const char *words;
        size_t length;

        monitor->runtime_pid = 0;
        mon_stderr_tail_read(&monitor->stderr_tail, monitor->settings->terminal ? monitor->stderr_fd : monitor->errors.fd);
        nd_close_fd(&monitor->stderr_fd);
        (void) nd_sys->unlinkat(monitor->directory, "pid", 0);
        (void) nd_sys->unlinkat(monitor->directory, "console", 0);
        if (pid > 0 && is_our_child(pid)) {
                finish_create(monitor, pid);
                return;
        }
        words = mon_stderr_tail_last_line(&monitor->stderr_tail, &length);
        if (monitor->timed_out)
                fail(monitor, ETIMEDOUT, timed_out, sizeof timed_out - 1);
        else if (length > 0)
                fail(monitor, 0, words, length);
        else if (pid > 0)
                fail(monitor, 0, dead, sizeof dead - 1);
        else if (well)
                fail(monitor, 0, no_pid, sizeof no_pid - 1);
        else
                fail(monitor, 0, silent, sizeof silent - 1);
}

/* ---- while it runs ---- */

static void container_exited(struct mon_monitor *monitor, int status) {
        monitor->state.phase = ND_MONITOR_EXITED;
        monitor->state.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        monitor->state.at = nd_clock_wall_ns();
        mon_oom_read(&monitor->oom);
        monitor->state.oom_kills = monitor->oom.kills;
        mon_stream_drain(&monitor->out, DRAIN, &monitor->log, &monitor->attach);
        mon_stream_drain(&monitor->errors, DRAIN, &monitor->log, &monitor->attach);
        monitor->state.lost = monitor->log.lost;
        mon_record_write(monitor->record, &monitor->state);
        mon_control_broadcast(&monitor->control, &(struct nd_monitor_message) {.letter = ND_MONITOR_IS_EXITED});
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                mon_attach_remove(&monitor->attach, i);
        monitor->deadline = nd_clock_us() + linger_us;
}

/* Waits without reaping first: the container's first process may exit at the same time as the OCI
 * runtime, and we need its PID by then. */
static void reap(struct mon_monitor *monitor, [[maybe_unused]] size_t which) {
        struct signalfd_siginfo ignored;
        siginfo_t child = {};
        int status = 0;

        while (read(monitor->signals, &ignored, sizeof ignored) > 0)
                ;
        while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid > 0) {
                if (waitpid(child.si_pid, &status, 0) != child.si_pid)
                        return;
                if (child.si_pid == monitor->runtime_pid)
                        runtime_exited(monitor, status);
                else if (monitor->state.phase == ND_MONITOR_CREATED && child.si_pid == monitor->state.pid)
                        container_exited(monitor, status);
                child.si_pid = 0;
        }
}

static void read_output(struct mon_monitor *monitor, size_t which) {
        struct mon_stream *stream = which == 0 ? &monitor->out : &monitor->errors;
        size_t most = mon_attach_room(&monitor->attach, which, sizeof stream->buffer.bytes, nd_clock_us());

        if (most > 0)
                (void) mon_stream_read(stream, most, &monitor->log, &monitor->attach);
}

static void release_output(struct mon_monitor *monitor, size_t connection) {
        mon_attach_resume(&monitor->attach, connection, nd_clock_us());
}

static void close_input(struct mon_monitor *monitor) {
        if (monitor->settings->terminal)
                monitor->in = -EBADF; /* it is the output, too */
        else
                nd_close_fd(&monitor->in);
}

static void write_input(struct mon_monitor *monitor, [[maybe_unused]] size_t which) {
        if (monitor->in >= 0 && !mon_attach_write_input(&monitor->attach, monitor->in))
                close_input(monitor);
}

static void read_input(struct mon_monitor *monitor, size_t connection) {
        if (monitor->attach.length > 0)
                return; /* another client was first in this iteration */
        mon_attach_read_input(&monitor->attach, connection);
        write_input(monitor, 0);
}

/* The input of a stdin-once container closes with its first client's. If the container has no
 * input, or no more, clients get EOF. */
static void update_input(struct mon_monitor *monitor) {
        bool once = monitor->settings->stdin_once && !monitor->settings->terminal;

        if (monitor->settings->terminal && monitor->out.fd < 0)
                monitor->in = -EBADF;
        if (once && monitor->attach.input_ended && monitor->attach.length == 0)
                close_input(monitor);
        if (monitor->in < 0)
                mon_attach_close_input(&monitor->attach);
}

static void count_kills(struct mon_monitor *monitor, [[maybe_unused]] size_t which) {
        mon_oom_read(&monitor->oom);
}

static void accept_connection(struct mon_monitor *monitor, [[maybe_unused]] size_t which) {
        mon_control_accept(&monitor->control);
}

static void reopen_log(struct mon_monitor *monitor, size_t connection) {
        int r = mon_log_reopen(&monitor->log);
        struct nd_monitor_message answer = {.letter = ND_MONITOR_REOPENED, .error_number = -r};

        if (r < 0) {
                answer.words = strerrordesc_np(-r) ?: "cannot open the log";
                answer.length = strlen(answer.words);
        }
        mon_control_reply(&monitor->control, connection, &answer);
}

static void attach(struct mon_monitor *monitor, size_t connection, unsigned streams, struct mon_control_fds *passed) {
        if (monitor->state.phase != ND_MONITOR_CREATED) {
                mon_control_reply(&monitor->control, connection,
                                  &(struct nd_monitor_message) {.letter = ND_MONITOR_ATTACHED, .error_number = ESRCH});
                return;
        }
        mon_attach_add(&monitor->attach, connection, streams, passed);
        if (monitor->out.fd < 0)
                mon_attach_close_output(&monitor->attach, 0);
        if (monitor->errors.fd < 0)
                mon_attach_close_output(&monitor->attach, 1);
}

static void read_message(struct mon_monitor *monitor, size_t connection) {
        nd_cleanup(mon_control_fds_done) struct mon_control_fds passed;
        struct nd_monitor_message message;
        bool known = mon_control_receive(&monitor->control, connection, &message, &passed);

        if (monitor->control.connections[connection] < 0)
                mon_attach_remove(&monitor->attach, connection);
        if (!known)
                return;
        if (message.letter == ND_MONITOR_ATTACH)
                attach(monitor, connection, message.streams, &passed);
        if (message.letter == ND_MONITOR_REOPEN)
                reopen_log(monitor, connection);
        else if (message.letter == ND_MONITOR_RESIZE && monitor->settings->terminal && monitor->out.fd >= 0)
                (void) ioctl(monitor->out.fd, TIOCSWINSZ,
                             &(struct winsize) {.ws_row = message.rows, .ws_col = message.columns});
}

/* ---- the loop ---- */

/* While clients stall an output, the loop waits for their sockets instead. */
static void watch_output(const struct mon_monitor *monitor, struct poll_set *set, const struct mon_stream *stream) {
        bool stalled = false;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                int fd = mon_attach_stalled_fd(&monitor->attach, i, stream->number);

                poll_add(set, fd, POLLOUT, release_output, i);
                stalled = stalled || fd >= 0;
        }
        if (!stalled)
                poll_add(set, stream->fd, POLLIN, read_output, stream->number);
}

static void watch_input(const struct mon_monitor *monitor, struct poll_set *set) {
        if (monitor->in < 0)
                return;
        if (monitor->attach.length > 0) {
                poll_add(set, monitor->in, POLLOUT, write_input, 0);
                return;
        }
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                poll_add(set, monitor->attach.clients[i].in, POLLIN, read_input, i);
}

static void poll_fill(struct mon_monitor *monitor, struct poll_set *set) {
        bool creating = monitor->state.phase == ND_MONITOR_CREATING;

        set->count = 0;
        poll_add(set, monitor->signals, POLLIN, reap, 0);
        poll_add(set, monitor->control.listener, POLLIN, accept_connection, 0);
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                poll_add(set, monitor->control.connections[i], POLLIN, read_message, i);
        if (creating) {
                poll_add(set, monitor->console.listener, POLLIN, receive_terminal, 0);
                poll_add(set, monitor->console.connection, POLLIN, receive_terminal, 0);
                return;
        }
        watch_output(monitor, set, &monitor->out);
        watch_output(monitor, set, &monitor->errors);
        watch_input(monitor, set);
        poll_add(set, monitor->oom.fd, POLLPRI, count_kills, 0);
}

/* Returns milliseconds to wait; -1 = no timeout. */
static int time_left(const struct mon_monitor *monitor) {
        uint64_t time = nd_clock_us(), deadline = monitor->deadline, clients = mon_attach_deadline(&monitor->attach);

        if (clients != 0 && (deadline == 0 || clients < deadline))
                deadline = clients;
        if (deadline == 0)
                return -1;
        return deadline <= time ? 0 : (int) ((deadline - time) / ND_MS_US + 1);
}

/* Handles the timeouts of `create`, of processes left after the exit, and of attached clients. */
static void check_deadline(struct mon_monitor *monitor) {
        mon_attach_drop_late(&monitor->attach, nd_clock_us());
        if (monitor->deadline == 0 || nd_clock_us() < monitor->deadline)
                return;
        if (monitor->runtime_pid > 0) {
                monitor->timed_out = true;
                monitor->deadline = 0;
                (void) kill(-monitor->runtime_pid, SIGKILL);
                (void) kill(monitor->runtime_pid, SIGKILL); /* it may not be a session leader yet */
                return;
        }
        nd_close_fd(&monitor->out.fd);
        nd_close_fd(&monitor->errors.fd);
}

static bool is_over(const struct mon_monitor *monitor) {
        if (monitor->state.phase == ND_MONITOR_FAILED)
                return true;
        return monitor->state.phase == ND_MONITOR_EXITED && monitor->out.fd < 0 && monitor->errors.fd < 0;
}

void mon_monitor_run(struct mon_monitor *monitor) {
        nd_autoerror struct nd_error *error = begin(monitor);
        struct poll_set set = {};

        if (error) {
                const char *words = nd_error_text(error);

                fail(monitor, nd_error_errno(error), words, strlen(words));
                return;
        }
        while (!is_over(monitor)) {
                poll_fill(monitor, &set);
                if (poll(set.polls, set.count, time_left(monitor)) < 0)
                        continue;
                for (nfds_t i = 0; i < set.count; i++)
                        if (set.polls[i].revents != 0)
                                set.watches[i].run(monitor, set.watches[i].which);
                update_input(monitor);
                check_deadline(monitor);
        }
}
