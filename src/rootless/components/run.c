/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - see run.h
 *
 * Theory of operation
 *   Init starts the program in a session of its own, bound to our pipe of orders (session.h): if we
 *   are killed, the program is killed too, and the next process of this kind starts it again.
 *   Containers and their monitors are not children of the program and survive.
 *   We copy the program's output (output.h) and forward its sd_notify(3) messages (notification.h)
 *   to our own service manager. SIGTERM is forwarded; SIGKILL follows after @stop_timeout_us.
 *   When the node stops, init ends the program; we stay until init has exited, since a service
 *   manager would start us again otherwise.
 *   A program of the control plane is our own child instead (outside.h), with the same pipes; it
 *   gets SIGTERM when the node stops.
 * Boundary  root of the node controls the program, its output, the notifications and init's
 *   replies. Nothing that arrives is waited for: each source is read without blocking, up to a
 *   number of times per second, and lines that standard error does not take are dropped. The pipes
 *   are made here, so that they are what they should be. The notify socket comes from init, since
 *   one of the host's network namespace must not get into the node: it is checked to be a datagram
 *   socket of AF_UNIX. */
#include "rootless/components/run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/unix.h"
#include "rootless/components/notification.h"
#include "rootless/components/output.h"
#include "rootless/components/outside.h"
#include "rootless/core/control.h"
#include "rootless/node/session.h"
#include "rootless/node/settings.h"
#include "sys/calls.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/notify.h"
#include "sys/process.h"

static constexpr uint64_t start_timeout_us = 10 * ND_SECOND_US;
/* The predecessor's program may still be ending; it was killed. */
static constexpr uint64_t busy_timeout_us = 30 * ND_SECOND_US;
static constexpr uint64_t busy_retry_us = 50 * ND_MS_US;
static constexpr uint64_t stop_timeout_us = 10 * ND_SECOND_US;
static constexpr uint64_t kill_timeout_us = 5 * ND_SECOND_US;
/* init's own grace periods and more */
static constexpr uint64_t node_end_timeout_us = 30 * ND_SECOND_US;

enum {
        OUTPUT_READS = 200, /* per second, of OUTPUT_BYTES each */
        OUTPUT_BYTES = 32 * 1024,
        OUTPUT_DRAINS = 8,  /* reads of what is left when the program has ended */
        NOTIFICATIONS = 20, /* per second */
};

struct run {
        const struct rootless_node *node;
        const char *name;
        const struct rootless_component_record *record;
        sd_event *loop;
        int control;                     /* connection to init */
        int orders;                      /* pipe to the monitor */
        int output;                      /* pipe from the program */
        int notify;                      /* datagrams from the program; -EBADF = none */
        int child;                       /* pidfd of a program outside of the node; -EBADF = none */
        int theirs[SESSION_STREAMS + 2]; /* descriptors for init, in its order */
        size_t their_count;
        struct rootless_output lines;
        uint64_t dropped; /* lines that standard error did not take */
        struct rootless_component_state state;
        int code;
        bool node_ended;
};

static void run_done(struct run *run) {
        for (size_t i = 0; i < run->their_count; i++)
                nd_close_fd(&run->theirs[i]);
        nd_close_fd(&run->control);
        nd_close_fd(&run->orders);
        nd_close_fd(&run->output);
        nd_close_fd(&run->notify);
        nd_close_fd(&run->child);
        sd_event_unref(run->loop);
        rootless_component_state_done(&run->state);
}

/* ---- state ---- */

static void save_state(struct run *run) {
        nd_autoerror struct nd_error *error = rootless_component_state_save(run->node, run->name, &run->state);

        if (error)
                nd_log(ND_LOG_WARNING, "cannot record the state of a component", nd_field("component", run->name),
                       nd_field("error", nd_error_text(error)));
}

static void set_state(struct run *run, const char *state) {
        run->state.state = state;
        save_state(run);
}

static void set_ready(struct run *run) {
        if (!nd_streq(run->state.state, "starting"))
                return;
        set_state(run, "ready");
        nd_notify_ready(run->state.status);
}

/* ---- output ---- */

/* Our standard error must not block us: a stopped terminal or a slow reader costs lines, not the
 * component. */
static void write_line(const char *line, size_t length, void *userdata) {
        struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};
        struct run *run = userdata;

        if (poll(&wait, 1, 0) <= 0 || !(wait.revents & POLLOUT)) {
                run->dropped++;
                return;
        }
        if (run->dropped > 0) {
                (void) fprintf(stderr, "%s: %llu lines were dropped\n", run->name, (unsigned long long) run->dropped);
                run->dropped = 0;
        }
        (void) !write(STDERR_FILENO, line, length);
}

static ssize_t copy_output(struct run *run) {
        char bytes[OUTPUT_BYTES];
        ssize_t n = read(run->output, bytes, sizeof bytes);

        if (n > 0)
                rootless_output_add(&run->lines, bytes, (size_t) n);
        return n;
}

static int on_output(sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct run *run = userdata;

        /* the program may close its output and go on */
        if (copy_output(run) == 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

/* ---- notifications ---- */

/* Descriptors that come with a message are not received, so the kernel closes them. */
static int on_notification([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events,
                           void *userdata) {
        struct rootless_notification notification;
        struct run *run = userdata;
        char bytes[NOTIFICATION_BYTES + 1];
        ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);

        if (n <= 0)
                return 0;
        rootless_notification_parse(bytes, (size_t) n, &notification);
        if (notification.has_status && !nd_streq(notification.status, run->state.status)) {
                nd_strset(&run->state.status, notification.status);
                save_state(run);
                nd_notify_status(run->state.status);
        }
        if (notification.ready)
                set_ready(run);
        return 0;
}

/* ---- the end ---- */

static void order(const struct run *run, int signal) {
        unsigned char byte = (unsigned char) signal;

        if (run->child >= 0)
                (void) nd_sys->pidfd_send_signal(run->child, signal, 0);
        else
                (void) !write(run->orders, &byte, 1);
}

/* The monitor does not obey: root of the node has stopped it, for instance. */
static int on_kill_timeout([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct run *run = userdata;

        run->code = EXIT_FAILURE;
        return sd_event_exit(run->loop, 0);
}

static int on_stop_timeout([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct run *run = userdata;

        order(run, SIGKILL);
        return sd_event_add_time_relative(run->loop, nullptr, CLOCK_MONOTONIC, kill_timeout_us, 0, on_kill_timeout, run);
}

static void stop(struct run *run) {
        if (nd_streq(run->state.state, "stopping"))
                return;
        set_state(run, "stopping");
        nd_notify_stopping();
        order(run, SIGTERM);
        (void) sd_event_add_time_relative(run->loop, nullptr, CLOCK_MONOTONIC, stop_timeout_us, 0, on_stop_timeout, run);
}

static int on_signal([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *si,
                     void *userdata) {
        stop(userdata);
        return 0;
}

static int on_node_end_timeout([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct run *run = userdata;

        return sd_event_exit(run->loop, 0);
}

static int on_init_ended(sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct run *run = userdata;

        run->code = EXIT_SUCCESS;
        run->node_ended = true;
        if (run->child < 0)
                return sd_event_exit(run->loop, 0);
        /* a program outside does not end with the node: etcd closes its files first */
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        stop(run);
        return 0;
}

static int on_child_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                          void *userdata) {
        struct run *run = userdata;
        siginfo_t end = {};

        if (waitid(P_PIDFD, (id_t) run->child, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
                return 0;
        if (!run->node_ended)
                run->code = end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
        return sd_event_exit(run->loop, 0);
}

static void take_status(struct run *run, const struct rootless_control *message) {
        const char *code = rootless_control_get(message, "code"), *killed = rootless_control_get(message, "signal");
        uint64_t number = EXIT_FAILURE;

        (void) !nd_text_parse_u64(code ? code : killed ? killed : "1", killed ? 127 : 255, &number);
        run->code = (int) (killed ? 128 + number : number);
}

static int on_control(sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct run *run = userdata;
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autoerror struct nd_error *error = rootless_control_receive(fd, 1, &message);

        if (error && nd_error_code(error) != ND_CANCELLED)
                return 0; /* not from init */
        if (error) {
                run->code = EXIT_FAILURE; /* unless init has exited, which another source sees */
                return sd_event_exit(run->loop, 0);
        }
        if (!nd_streq(message.verb, "ended"))
                return 0;
        take_status(run, &message);
        if (!rootless_control_get(&message, "stopping"))
                return sd_event_exit(run->loop, 0);
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return sd_event_add_time_relative(run->loop, nullptr, CLOCK_MONOTONIC, node_end_timeout_us, 0, on_node_end_timeout,
                                          run);
}

/* ---- the start ---- */

static struct nd_error *make_pipe(int *ret_read, int *ret_write) {
        int fds[2];

        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe");
        *ret_read = fds[0];
        *ret_write = fds[1];
        return nullptr;
}

static void give(struct run *run, int fd) {
        run->theirs[run->their_count++] = fd;
}

/* Streams, orders and reports: each is closed by run_done(). */
static struct nd_error *make_descriptors(struct run *run) {
        int output = -EBADF, orders = -EBADF;

        give(run, nd_sys->openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0));
        nd_try(make_pipe(&run->output, &output));
        give(run, output);
        give(run, fcntl(output, F_DUPFD_CLOEXEC, 0));
        nd_try(make_pipe(&orders, &run->orders));
        give(run, orders);
        give(run, nd_sys->openat(AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC, 0)); /* reports */
        for (size_t i = 0; i < run->their_count; i++)
                if (run->theirs[i] < 0)
                        return nd_error_new(ND_INTERNAL, errno, "create descriptors for a component");
        if (fcntl(run->output, F_SETFL, O_NONBLOCK) < 0 || fcntl(run->orders, F_SETFL, O_NONBLOCK) < 0)
                return nd_error_new(ND_INTERNAL, errno, "make a pipe non-blocking");
        return nullptr;
}

/* Only what a component needs, and nothing of the service manager's environment. */
static void add_environment(const struct run *run, struct nd_text *text) {
        nd_autofree char *path = nd_format("PATH=%s", run->record->path);
        const char *const variables[] = {"HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "LANG=C.UTF-8", path};

        for (size_t i = 0; i < nd_count_of(variables); i++)
                rootless_control_add(text, "env", variables[i]);
        if (run->record->notifies) {
                nd_autofree char *socket = nd_format("NOTIFY_SOCKET=/run/nodens-components/%s", run->name);

                rootless_control_add(text, "env", socket);
                rootless_control_add(text, "notify", "1");
        }
}

static void format_start(const struct run *run, struct nd_text *text) {
        rootless_control_begin(text, "start");
        rootless_control_add(text, "component", run->name);
        rootless_control_add(text, "leaf", run->name);
        rootless_control_add(text, "bound", "1");
        rootless_control_add(text, "directory", "/");
        if (run->record->stops_first)
                rootless_control_add(text, "stops-first", "1");
        nd_vector_each (word, &run->record->argv) {
                rootless_control_add(text, "arg", *word);
        }
        add_environment(run, text);
}

static bool has_option(int fd, int name, int wanted) {
        socklen_t size = sizeof(int);
        int found = -1;

        return getsockopt(fd, SOL_SOCKET, name, &found, &size) == 0 && found == wanted;
}

/* Root of the node could have answered in init's place. */
static struct nd_error *take_notify(struct run *run, struct rootless_control *reply) {
        int fd = reply->descriptor_count == 1 ? reply->descriptors[0] : -EBADF;

        if (!run->record->notifies)
                return nullptr;
        if (fd < 0 || !has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_DGRAM))
                return nd_error_new(ND_INVALID, 0, "start component '%s' in node '%s': the reply has no datagram socket",
                                    run->name, run->node->name);
        run->notify = nd_take_fd(reply->descriptors[0]);
        reply->descriptor_count = 0;
        return nullptr;
}

/* The socket is in a directory that only the user can enter, as is the node's for its programs. */
static struct nd_error *open_notify(struct run *run, const char *path) {
        struct sockaddr_un address;

        nd_try(nd_unix_address(path, &address));
        (void) nd_sys->unlinkat(AT_FDCWD, path, 0);
        run->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (run->notify < 0 || bind(run->notify, (struct sockaddr *) &address, sizeof address) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create the socket '%s'", path);
        return nullptr;
}

static struct nd_error *start_outside(struct run *run, int init_pidfd) {
        nd_autofree char *path = nd_format("PATH=%s", run->record->path),
                         *socket = nd_format("%s/" COMPONENTS_DIRECTORY "/%s.sock", run->node->path, run->name),
                         *notify = nd_format("NOTIFY_SOCKET=%s", socket);
        const char *const environment[] = {path, "LANG=C.UTF-8", run->record->notifies ? notify : nullptr, nullptr};
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_autoclose int output = -EBADF;

        nd_vector_each (word, &run->record->argv) {
                nd_strings_add(&argv, *word);
        }
        nd_strings_add_owned(&argv, nullptr);
        nd_try(make_pipe(&run->output, &output));
        if (fcntl(run->output, F_SETFL, O_NONBLOCK) < 0)
                return nd_error_new(ND_INTERNAL, errno, "make a pipe non-blocking");
        if (run->record->notifies)
                nd_try(open_notify(run, socket));
        return rootless_outside_start(&(struct rootless_outside) {.argv = (const char *const *) argv.items,
                                                                  .environment = environment,
                                                                  .directory = run->node->path,
                                                                  .node = init_pidfd,
                                                                  .output = output},
                                      &run->child);
}

static struct nd_error *start(struct run *run) {
        uint64_t end = nd_clock_us() + busy_timeout_us;
        nd_cleanup(rootless_control_done) struct rootless_control reply = {};
        nd_autotext struct nd_text text = CONTROL_TEXT;

        nd_try(make_descriptors(run));
        format_start(run, &text);
        nd_try(rootless_node_connect(run->node, &run->control));
        for (;;) {
                struct nd_error *error =
                        rootless_control_call(run->control, &text, run->theirs, run->their_count, start_timeout_us, &reply);

                if (nd_error_code(error) != ND_EXISTS || nd_clock_us() > end) {
                        nd_try(nd_error_wrap(error, "start component '%s' in node '%s'", run->name, run->node->name));
                        break;
                }
                nd_error_free(error);
                (void) usleep(busy_retry_us);
        }
        /* with our copies of its ends, a pipe would not end with the program */
        for (size_t i = 0; i < run->their_count; i++)
                nd_close_fd(&run->theirs[i]);
        return take_notify(run, &reply);
}

static int add_limited(struct run *run, int fd, sd_event_io_handler_t handler, unsigned per_second) {
        sd_event_source *source = nullptr;
        int r = sd_event_add_io(run->loop, &source, fd, EPOLLIN, handler, run);

        if (r >= 0)
                r = sd_event_source_set_ratelimit(source, ND_SECOND_US, per_second);
        if (r >= 0)
                r = sd_event_source_set_floating(source, true);
        sd_event_source_unref(source);
        return r;
}

static int add_sources(struct run *run, int init_pidfd) {
        int r = run->child >= 0 ? sd_event_add_io(run->loop, nullptr, run->child, EPOLLIN, on_child_ended, run)
                                : sd_event_add_io(run->loop, nullptr, run->control, EPOLLIN, on_control, run);

        if (r >= 0)
                r = sd_event_add_io(run->loop, nullptr, init_pidfd, EPOLLIN, on_init_ended, run);
        if (r >= 0)
                r = sd_event_add_signal(run->loop, nullptr, SIGTERM, on_signal, run);
        if (r >= 0)
                r = sd_event_add_signal(run->loop, nullptr, SIGINT, on_signal, run);
        if (r >= 0)
                r = add_limited(run, run->output, on_output, OUTPUT_READS);
        if (r >= 0 && run->notify >= 0)
                r = add_limited(run, run->notify, on_notification, NOTIFICATIONS);
        return r >= 0 ? sd_event_set_watchdog(run->loop, true) : r;
}

static struct nd_error *serve(struct run *run, int init_pidfd) {
        int r = add_sources(run, init_pidfd);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "watch component '%s'", run->name);
        set_state(run, "starting");
        if (!run->record->notifies)
                set_ready(run);
        r = sd_event_loop(run->loop);
        for (int i = 0; i < OUTPUT_DRAINS && copy_output(run) > 0; i++)
                ;
        rootless_output_end(&run->lines);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for component '%s'", run->name) : nullptr;
}

static void block_signals(void) {
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        (void) signal(SIGPIPE, SIG_IGN);
}

struct nd_error *rootless_component_run(const struct rootless_node *node, const char *name,
                                        const struct rootless_component_record *record, int init_pidfd, int *ret_code) {
        nd_cleanup(run_done) struct run run = {.node = node,
                                               .name = name,
                                               .record = record,
                                               .control = -EBADF,
                                               .orders = -EBADF,
                                               .output = -EBADF,
                                               .notify = -EBADF,
                                               .child = -EBADF,
                                               .state = {.pid = getpid(), .state = "starting", .status = nd_strdup("")}};
        int r = sd_event_new(&run.loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        run.lines = (struct rootless_output) {.name = name, .write = write_line, .userdata = &run};
        nd_try(nd_process_start_time(run.state.pid, &run.state.started));
        block_signals();
        nd_try(record->outside ? start_outside(&run, init_pidfd) : start(&run));
        nd_try(serve(&run, init_pidfd));
        *ret_code = run.code;
        return nullptr;
}
