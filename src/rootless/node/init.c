/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - see init.h
 *
 * Theory of operation
 *   There is one listening socket, which only the user outside can reach, and one event source per
 *   connection. A request is one message and gets one reply (control.h). "start" gets a second one,
 *   "ended", when the process exits, so the client only has to wait. A connection has at most one
 *   process: the monitor of a command (session.h). On SIGCHLD we reap all children: our own and the
 *   node's orphans.
 *   "stop" and SIGTERM do the same: SIGTERM to all processes, SIGKILL after @stop_grace_us; init
 *   exits when no process is left. Components that are to end first (a kubelet would restart the
 *   pods that we end) get SIGTERM before, and @first_grace_us.
 *   A component has at most one process: a start is refused until the previous one was reaped, also
 *   if its connection has closed meanwhile.
 * Invariant  a process runs in a leaf of its own name below the delegated cgroup, if there is one.
 * The root itself never has processes, else the kernel could not enable controllers for its
 * children. */
#include "rootless/node/init.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/unix.h"
#include "rootless/core/control.h"
#include "rootless/network/network.h"
#include "rootless/network/overlay.h"
#include "rootless/network/sockets.h"
#include "rootless/node/mounts.h"
#include "rootless/node/session.h"
#include "sys/calls.h"
#include "sys/file.h"

enum {
        CONNECTIONS = 256,
        COMPONENT_BYTES = 32,
};

/* stop.c waits for the sum of them */
static constexpr uint64_t first_grace_us = 5 * ND_SECOND_US;
static constexpr uint64_t stop_grace_us = 10 * ND_SECOND_US;

/* Where programs of the node send sd_notify(3) messages, one socket per component. */
#define NOTIFY_DIRECTORY "/run/nodens-components"

struct connection {
        struct connection *next;
        struct init *init;
        int fd; /* -EBADF: closed, and the component's process is not reaped yet */
        sd_event_source *source;
        pid_t pid;                                /* 0 = none */
        char *component;                          /* nullptr: a command */
        bool stops_first;                         /* before all other processes of the node */
        struct rootless_sockets_response sockets; /* descriptors of the reply being built */
};

struct init {
        sd_event *loop;
        struct connection *connections;
        size_t count;
        bool has_cgroup;
        bool stopping;
        bool stopping_all;  /* SIGTERM was sent to all processes */
        bool sockets_tried; /* sockets_keep is valid */
        bool sockets_keep;  /* client addresses can be kept */
        struct rootless_overlay overlay;
};

static void connection_free(struct connection *c) {
        for (struct connection **at = &c->init->connections; *at; at = &(*at)->next)
                if (*at == c) {
                        *at = c->next;
                        c->init->count--;
                        break;
                }
        sd_event_source_disable_unref(c->source);
        rootless_sockets_response_done(&c->sockets);
        nd_close_fd(&c->fd);
        free(c->component);
        free(c);
}

/* The peer has closed the connection. */
static void connection_close(struct connection *c) {
        if (!c->component || c->pid == 0) {
                connection_free(c);
                return;
        }
        c->source = sd_event_source_disable_unref(c->source);
        nd_close_fd(&c->fd);
}

/* ---- starting ---- */

/* The leaf that a process is started in. */
static struct nd_error *open_leaf(const char *name, int *ret_fd) {
        nd_autofree char *path = nd_format("/sys/fs/cgroup/%s", name);

        if (strchr(name, '/') || name[0] == '.' || name[0] == '\0')
                return nd_error_new(ND_INVALID, 0, "invalid cgroup name '%s'", name);
        nd_try(nd_dir_make(AT_FDCWD, path, 0755));
        return nd_dir_open(AT_FDCWD, path, ret_fd);
}

/* Takes the descriptors of a "start": three streams, the monitor's two pipes and, if the command
 * has one, its terminal. */
static struct nd_error *take_session(const struct rootless_control *message, struct rootless_session *ret) {
        enum { ORDERS = SESSION_STREAMS, REPORTS, TERMINAL };
        bool terminal = rootless_control_get(message, "terminal") != nullptr;

        if (message->descriptor_count != TERMINAL + (terminal ? 1u : 0u))
                return nd_error_new(ND_INVALID, 0,
                                    "invalid start request: needs three streams, two pipes and at most one terminal");
        memcpy(ret->streams, message->descriptors, sizeof ret->streams);
        ret->orders = message->descriptors[ORDERS];
        ret->reports = message->descriptors[REPORTS];
        ret->terminal = terminal ? message->descriptors[TERMINAL] : -EBADF;
        ret->foreground = rootless_control_get(message, "foreground") != nullptr;
        ret->bound = rootless_control_get(message, "bound") != nullptr;
        ret->directory = rootless_control_get(message, "directory");
        return nullptr;
}

[[noreturn]] static void become_monitor(const struct rootless_session *session) {
        int r = rootless_session_prepare(session);

        if (r == 0)
                rootless_session_lead(session);
        r = -r;
        (void) !write(session->failure, &r, sizeof r);
        _exit(127);
}

/* Makes the client's socket for sd_notify(3), at a path of the node. The socket must be of the
 * node's network namespace: with one of the host's, which root of the node can take from us, it
 * would reach the host's abstract sockets. */
static struct nd_error *open_notify(const char *component, int *ret_fd) {
        nd_autofree char *path = nd_format(NOTIFY_DIRECTORY "/%s", component);
        nd_autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address;
        mode_t mask;
        int r;

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket");
        nd_try(nd_unix_address(path, &address));
        nd_try(nd_dir_make(AT_FDCWD, NOTIFY_DIRECTORY, 0700));
        (void) nd_sys->unlinkat(AT_FDCWD, path, 0); /* of an earlier process */
        mask = umask(0177);
        r = bind(fd, (struct sockaddr *) &address, sizeof address);
        (void) umask(mask);
        if (r < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "bind '%s' in the node", path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static struct nd_error *start_process(struct init *init, const struct rootless_control *message, pid_t *ret_pid) {
        nd_autofree const char **argv = rootless_control_get_all(message, "arg"),
                               **environment = rootless_control_get_all(message, "env");
        const char *leaf = rootless_control_get(message, "leaf");
        nd_autoclose int failure = -EBADF, failure_end = -EBADF, cgroup = -EBADF;
        struct rootless_session session = {
                .argv = (char *const *) argv, .environment = (char *const *) environment, .node = -EBADF};
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        int fds[2], status = 0;
        ssize_t n;
        pid_t pid;

        if (!argv[0])
                return nd_error_new(ND_INVALID, 0, "invalid start request: no program");
        nd_try(take_session(message, &session));
        if (init->has_cgroup) {
                nd_try(open_leaf(leaf ? leaf : "node", &cgroup));
                arguments.flags |= CLONE_INTO_CGROUP;
                arguments.cgroup = (uint64_t) cgroup;
        }
        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe");
        failure = fds[0];
        failure_end = session.failure = fds[1];
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "start '%s'", argv[0]);
        if (pid == 0)
                become_monitor(&session);
        nd_close_fd(&failure_end);
        while ((n = read(failure, &status, sizeof status)) < 0 && errno == EINTR)
                ;
        if (n == sizeof status)
                return nd_error_new(status == ENOENT ? ND_NOT_FOUND : nd_error_code_of(status), status, "execute '%s'",
                                    argv[0]);
        *ret_pid = pid;
        return nullptr;
}

/* ---- requests: each handler takes the message and adds the fields of the reply ---- */

typedef struct nd_error *(*handler)(struct connection *c, const struct rootless_control *message, struct nd_text *answer);

static struct nd_error *take_component(struct connection *c, const char *name) {
        if (name[0] == '\0' || strlen(name) > COMPONENT_BYTES || strspn(name, "abcdefghijklmnopqrstuvwxyz-") != strlen(name))
                return nd_error_new(ND_INVALID, 0, "invalid name of a component");
        for (struct connection *other = c->init->connections; other; other = other->next)
                if (other->pid > 0 && other->component && nd_streq(other->component, name))
                        return nd_error_new(ND_EXISTS, EBUSY, "component '%s' is running already, or ending", name);
        nd_strset(&c->component, name);
        return nullptr;
}

static struct nd_error *on_start(struct connection *c, const struct rootless_control *message, struct nd_text *answer) {
        const char *component = rootless_control_get(message, "component");
        nd_autofree char *pid = nullptr;

        if (c->pid > 0)
                return nd_error_new(ND_PRECONDITION, 0, "this connection has already started a command");
        if (c->init->stopping)
                return nd_error_new(ND_UNAVAILABLE, 0, "the node is stopping");
        if (component)
                nd_try(take_component(c, component));
        c->stops_first = component && rootless_control_get(message, "stops-first");
        if (component && rootless_control_get(message, "notify")) {
                nd_try(open_notify(component, &c->sockets.descriptors[0]));
                c->sockets.count = 1;
        }
        nd_try(start_process(c->init, message, &c->pid));
        pid = nd_format("%d", (int) c->pid);
        rootless_control_add(answer, "pid", pid);
        return nullptr;
}

static struct nd_error *on_network([[maybe_unused]] struct connection *c, const struct rootless_control *message,
                                   [[maybe_unused]] struct nd_text *answer) {
        const char *resolv = rootless_control_get(message, "resolv");
        struct rootless_netplan plan;

        nd_try(rootless_network_parse(message, &plan));
        nd_try(rootless_network_apply(&plan));
        return resolv ? rootless_mounts_write_file("/etc/resolv.conf", resolv) : nullptr;
}

static struct nd_error *on_overlay(struct connection *c, const struct rootless_control *message,
                                   [[maybe_unused]] struct nd_text *answer) {
        nd_cleanup(rootless_overlay_done) struct rootless_overlay overlay = {};
        struct nd_error *error;

        nd_try(rootless_overlay_parse(message, &overlay));
        error = rootless_overlay_apply(&c->init->overlay, &overlay);
        rootless_overlay_done(&c->init->overlay);
        if (error) {
                /* of no family, so that the next one does not rely on what is there */
                c->init->overlay.mtu = overlay.mtu;
                return error;
        }
        memcpy(&c->init->overlay, &overlay, sizeof overlay);
        overlay = (struct rootless_overlay) {};
        return nullptr;
}

static struct nd_error *on_carrier([[maybe_unused]] struct connection *c,
                                   [[maybe_unused]] const struct rootless_control *message, struct nd_text *answer) {
        rootless_control_add(answer, "up", nd_netlink_link_has_carrier(NET_TAP) ? "1" : "0");
        return nullptr;
}

/* Rules and routes are made for the first request: a node without ports does not need them. */
static struct nd_error *on_sockets(struct connection *c, const struct rootless_control *message, struct nd_text *answer) {
        struct init *init = c->init;

        if (!init->sockets_tried || rootless_control_get(message, "prepare")) {
                nd_autoerror struct nd_error *error = rootless_sockets_prepare();

                init->sockets_tried = true;
                init->sockets_keep = !error;
                if (error)
                        rootless_control_add(answer, "why", nd_error_text(error));
        }
        return rootless_sockets_serve(message, init->sockets_keep, answer, &c->sockets);
}

static int on_grace_over([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec,
                         [[maybe_unused]] void *userdata) {
        (void) kill(-1, SIGKILL);
        return 0;
}

static void check_empty(struct init *init) {
        siginfo_t info;

        if (init->stopping && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
                (void) sd_event_exit(init->loop, 0);
}

static void stop_all(struct init *init) {
        if (init->stopping_all)
                return;
        init->stopping_all = true;
        (void) kill(-1, SIGTERM);
        (void) kill(-1, SIGCONT);
        (void) sd_event_add_time_relative(init->loop, nullptr, CLOCK_MONOTONIC, stop_grace_us, 0, on_grace_over, init);
        check_empty(init);
}

static int on_first_grace_over([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        stop_all(userdata);
        return 0;
}

static bool has_first(const struct init *init) {
        for (const struct connection *c = init->connections; c; c = c->next)
                if (c->stops_first && c->pid > 0)
                        return true;
        return false;
}

static void stop(struct init *init) {
        if (init->stopping)
                return;
        init->stopping = true;
        for (const struct connection *c = init->connections; c; c = c->next)
                if (c->stops_first && c->pid > 0)
                        (void) kill(c->pid, SESSION_END);
        if (!has_first(init) ||
            sd_event_add_time_relative(init->loop, nullptr, CLOCK_MONOTONIC, first_grace_us, 0, on_first_grace_over, init) < 0)
                stop_all(init);
}

static struct nd_error *on_stop(struct connection *c, [[maybe_unused]] const struct rootless_control *message,
                                [[maybe_unused]] struct nd_text *answer) {
        stop(c->init);
        return nullptr;
}

static const struct {
        const char *verb;
        handler handle;
} handlers[] = {
        {"start", on_start},     {"network", on_network}, {"overlay", on_overlay},
        {"carrier", on_carrier}, {"sockets", on_sockets}, {"stop", on_stop},
};

static struct nd_error *handle(struct connection *c, const struct rootless_control *message, struct nd_text *answer) {
        for (size_t i = 0; i < nd_count_of(handlers); i++)
                if (nd_streq(message->verb, handlers[i].verb))
                        return handlers[i].handle(c, message, answer);
        return nd_error_new(ND_UNIMPLEMENTED, 0, "protocol mismatch: unknown request '%s'; node is older than this client",
                            message->verb);
}

static int on_message([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct connection *c = userdata;
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autoerror struct nd_error *error = nullptr, *unsent = nullptr;
        nd_autotext struct nd_text answer = CONTROL_TEXT;

        error = rootless_control_receive(fd, 1, &message);
        if (nd_error_code(error) == ND_CANCELLED) {
                connection_close(c);
                return 0;
        }
        rootless_control_begin(&answer, "done");
        if (!error)
                error = handle(c, &message, &answer);
        if (error) {
                nd_text_done(&answer);
                answer = CONTROL_TEXT;
                rootless_control_add_error(&answer, error);
        }
        unsent = rootless_control_send(fd, &answer, c->sockets.descriptors, error ? 0 : c->sockets.count);
        rootless_sockets_response_done(&c->sockets);
        if (unsent)
                connection_close(c);
        return 0;
}

/* Only the user may connect, who is root inside. Other users of the node have other IDs, and do not
 * see the socket. */
static bool trusted(int fd) {
        struct ucred peer;
        socklen_t length = sizeof peer;

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == 0;
}

static int on_connection([[maybe_unused]] sd_event_source *source, int listener, [[maybe_unused]] uint32_t events,
                         void *userdata) {
        struct init *init = userdata;
        nd_autoclose int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct connection *c;

        if (fd < 0 || init->count == CONNECTIONS || !trusted(fd))
                return 0;
        c = nd_new(struct connection);
        *c = (struct connection) {.init = init, .fd = fd, .next = init->connections};
        if (sd_event_add_io(init->loop, &c->source, fd, EPOLLIN, on_message, c) < 0) {
                free(c);
                return 0;
        }
        (void) nd_take_fd(fd);
        init->connections = c;
        init->count++;
        return 0;
}

/* ---- reaping ---- */

static void send_ended(struct init *init, const siginfo_t *end) {
        for (struct connection *c = init->connections; c; c = c->next) {
                nd_autotext struct nd_text text = CONTROL_TEXT;
                nd_autofree char *number = nullptr;

                if (c->pid != end->si_pid)
                        continue;
                c->pid = 0;
                if (c->fd < 0) {
                        connection_free(c);
                        return;
                }
                number = nd_format("%d", end->si_status);
                rootless_control_begin(&text, "ended");
                rootless_control_add(&text, end->si_code == CLD_EXITED ? "code" : "signal", number);
                if (init->stopping)
                        rootless_control_add(&text, "stopping", "1");
                /* the client may have disconnected */
                nd_ignore(rootless_control_send(c->fd, &text, nullptr, 0));
                return;
        }
}

static int on_child([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *si,
                    void *userdata) {
        struct init *init = userdata;

        for (;;) {
                siginfo_t end = {};

                if (waitid(P_ALL, 0, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
                        break;
                send_ended(init, &end);
        }
        if (init->stopping && !has_first(init))
                stop_all(init);
        check_empty(init);
        return 0;
}

static int on_terminate([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *si,
                        void *userdata) {
        stop(userdata);
        return 0;
}

static int serve(struct init *init, int listener_fd) {
        sigset_t mask;
        int r;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        r = sd_event_add_io(init->loop, nullptr, listener_fd, EPOLLIN, on_connection, init);
        if (r >= 0)
                r = sd_event_add_signal(init->loop, nullptr, SIGCHLD, on_child, init);
        if (r >= 0)
                r = sd_event_add_signal(init->loop, nullptr, SIGTERM, on_terminate, init);
        return r >= 0 ? sd_event_loop(init->loop) : r;
}

struct nd_error *rootless_init_serve(int listener_fd, bool has_cgroup) {
        struct init init = {.has_cgroup = has_cgroup};
        int r = sd_event_new(&init.loop);

        if (r >= 0)
                r = serve(&init, listener_fd);
        for (struct connection *c = init.connections, *next; c; c = next) {
                next = c->next;
                connection_free(c);
        }
        sd_event_unref(init.loop);
        rootless_overlay_done(&init.overlay);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "serve requests to the node") : nullptr;
}
