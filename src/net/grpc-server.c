/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-server.c - see grpc-server.h
 *
 * Theory of operation
 *   A connection is a socket, a session (grpc-session.c) and three sources: the socket, a timer
 *   that runs while output is queued and the peer does not read, and one that is due when a handler
 *   has answered. After every read, and from the loop after an answer, the session's output is
 *   written until the socket is full; the remainder is kept in a buffer (@rest) and EPOLLOUT is
 *   requested. So no handler and no other connection ever waits for a peer. Nothing is written
 *   while a handler runs: writing the end of a stream notifies handlers of cancelled calls and
 *   frees calls, and that handler may be using one of them.
 *   A call with a deadline has a timer; when it expires the session answers DEADLINE_EXCEEDED and
 *   notifies the handler.
 *   Accepting pauses at ND_CONNECTIONS connections, and for a moment if the process is out of
 *   descriptors, instead of spinning.
 * Owns       connections, timers. Handlers own their calls until they finish them, even if the
 *            server is freed before. */
#include "net/grpc-server.h"

#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"

enum {
        ND_CONNECTIONS = 512,
        READ_SIZE = 64 << 10,
        READ_TURNS = 16, /* reads per wake-up, so that one busy peer does not starve the others */
        WRITE_TURNS = 64,
};

static constexpr uint64_t accept_pause_us = 100 * ND_MS_US;
static constexpr uint64_t stalled_default_us = 60 * ND_SECOND_US;

struct connection {
        struct nd_grpc_server *server;
        struct connection *next, *previous;
        int fd;
        sd_event_source *source;
        sd_event_source *stalled; /* enabled while output is queued */
        sd_event_source *writer;  /* due when a handler has answered */
        struct nd_grpc_session *session;
        struct nd_text rest; /* taken from the session, not yet written */
        size_t written;
        bool doomed;
};

struct listener {
        struct nd_grpc_server *server;
        struct listener *next;
        int fd;
        sd_event_source *source, *pause;
};

struct nd_grpc_server {
        sd_event *loop;
        struct nd_grpc_server_settings settings;
        struct listener *listeners;
        struct connection *connections;
        struct ticket *tickets;
        size_t connection_count, call_count;
        char buffer[READ_SIZE];
};

/* Per-call data of the server: the timer and the arrival time. */
struct ticket {
        struct nd_grpc_server *server;
        struct ticket *next, *previous;
        struct nd_grpc_call *call;
        sd_event_source *deadline;
        uint64_t started_us;
};

/* Unlinks a connection from the server's list. */
static void connection_unlink(struct connection *c) {
        if (c->previous)
                c->previous->next = c->next;
        else
                c->server->connections = c->next;
        if (c->next)
                c->next->previous = c->previous;
        nd_assert(c->server->connection_count > 0);
        c->server->connection_count--;
}

static void connection_free(struct connection *c) {
        sd_event_source_disable_unref(c->source);
        sd_event_source_disable_unref(c->stalled);
        sd_event_source_disable_unref(c->writer);
        nd_grpc_session_free(c->session);
        nd_text_done(&c->rest);
        nd_close_fd(&c->fd);
        connection_unlink(c);
        free(c);
}

/* ---- output ---- */

/* Writes the buffered output. Returns false if the socket is full or broken. */
static bool write_rest(struct connection *c) {
        while (c->written < c->rest.length) {
                ssize_t n = send(c->fd, c->rest.bytes + c->written, c->rest.length - c->written, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        c->doomed = errno != EAGAIN;
                        return false;
                }
                c->written += (size_t) n;
                (void) sd_event_source_set_enabled(c->stalled, SD_EVENT_OFF);
        }
        c->rest.length = c->written = 0;
        return true;
}

/* Gathers frames before writing: small frames (headers, data, trailers of one response) leave in
 * one system call. */
static void gather(struct connection *c) {
        const char *bytes;
        size_t n;

        while (c->rest.length < READ_SIZE && (n = nd_grpc_session_output(c->session, &bytes)) > 0) {
                c->rest.ceiling = c->rest.length + n;
                nd_text_append(&c->rest, bytes, n);
        }
}

static void watch_output(struct connection *c, bool waiting) {
        (void) sd_event_source_set_io_events(c->source, waiting ? EPOLLIN | EPOLLOUT : EPOLLIN);
        if (!waiting) {
                (void) sd_event_source_set_enabled(c->stalled, SD_EVENT_OFF);
        } else {
                int enabled = SD_EVENT_OFF;

                (void) sd_event_source_get_enabled(c->stalled, &enabled);
                if (enabled == SD_EVENT_OFF) {
                        (void) sd_event_source_set_time_relative(c->stalled, c->server->settings.stalled_us);
                        (void) sd_event_source_set_enabled(c->stalled, SD_EVENT_ONESHOT);
                }
        }
}

static void flush(struct connection *c) {
        bool open = true;

        for (int turn = 0; open && turn < WRITE_TURNS; turn++) {
                open = write_rest(c);
                if (!open)
                        break;
                gather(c);
                if (c->rest.length == 0)
                        break;
        }
        watch_output(c, c->rest.length > c->written);
}

/* Writes the queued output, then closes the connection if it has ended. */
static void flush_and_judge(struct connection *c) {
        flush(c);
        if (c->doomed || nd_grpc_session_over(c->session))
                connection_free(c);
}

static void on_output(void *userdata) {
        struct connection *c = userdata;

        (void) sd_event_source_set_enabled(c->writer, SD_EVENT_ONESHOT);
}

static int on_writer([[maybe_unused]] sd_event_source *source, void *userdata) {
        flush_and_judge(userdata);
        return 0;
}

static int on_stalled([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        connection_free(userdata);
        return 0;
}

/* ---- calls ---- */

const struct nd_grpc_method *nd_grpc_method_find(const struct nd_grpc_method *const *tables, const char *path) {
        for (; *tables; tables++)
                for (const struct nd_grpc_method *m = *tables; m->path; m++)
                        if (nd_streq(m->path, path))
                                return m;
        return nullptr;
}

static int on_deadline([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct ticket *ticket = userdata;

        nd_grpc_call_expire(ticket->call);
        return 0;
}

static void ticket_detach(void *attachment) {
        struct ticket *ticket = attachment;
        struct nd_grpc_server *server = ticket->server;

        if (server) {
                nd_assert(server->call_count > 0);
                server->call_count--;
                if (ticket->previous)
                        ticket->previous->next = ticket->next;
                else
                        server->tickets = ticket->next;
                if (ticket->next)
                        ticket->next->previous = ticket->previous;
                if (server->settings.observe)
                        server->settings.observe(ticket->call, nd_clock_us() - ticket->started_us, server->settings.userdata);
        }
        sd_event_source_disable_unref(ticket->deadline);
        free(ticket);
}

static void on_request(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        struct connection *c = userdata;
        struct nd_grpc_server *server = c->server;
        const struct nd_grpc_method *method = nd_grpc_method_find(server->settings.tables, nd_grpc_call_path(call));
        struct ticket *ticket = nd_new(struct ticket);
        uint64_t timeout = nd_grpc_call_timeout_us(call);

        *ticket = (struct ticket) {.server = server, .next = server->tickets, .call = call, .started_us = nd_clock_us()};
        if (ticket->next)
                ticket->next->previous = ticket;
        server->tickets = ticket;
        server->call_count++;
        nd_grpc_call_attach(call, ticket, ticket_detach);
        if (!method) {
                nd_grpc_call_finish(call, nd_error_new(ND_UNIMPLEMENTED, 0, "unknown method %.200s", nd_grpc_call_path(call)));
                return;
        }
        if (timeout > 0 && sd_event_add_time_relative(server->loop, &ticket->deadline, CLOCK_MONOTONIC, timeout, ND_MS_US,
                                                      on_deadline, ticket) < 0) {
                nd_grpc_call_finish(call, nd_error_new(ND_EXHAUSTED, 0, "create timer for the deadline"));
                return;
        }
        method->handle(call, bytes, length, server->settings.userdata);
}

/* ---- input ---- */

/* Returns false if the connection has ended. */
static bool read_some(struct connection *c) {
        char *buffer = c->server->buffer;

        for (int turn = 0; turn < READ_TURNS; turn++) {
                ssize_t n = recv(c->fd, buffer, READ_SIZE, MSG_DONTWAIT);
                struct nd_error *error;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN;
                if (n == 0)
                        return false;
                error = nd_grpc_session_receive(c->session, buffer, (size_t) n);
                if (error) {
                        nd_error_free(error);
                        flush(c); /* the session's GOAWAY */
                        return false;
                }
                if (n < READ_SIZE)
                        return true;
        }
        return true;
}

static int on_socket([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct connection *c = userdata;

        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !read_some(c))
                connection_free(c);
        else
                flush_and_judge(c);
        return 0;
}

static bool peer_allowed(int fd) {
        struct ucred peer;
        socklen_t size = sizeof peer;

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static int connection_start(struct nd_grpc_server *server, int fd) {
        static const struct nd_grpc_events events = {.request = on_request, .output = on_output};
        struct connection *c = nd_new(struct connection);
        struct nd_error *error;
        int r;

        *c = (struct connection) {.server = server, .next = server->connections, .fd = fd};
        if (c->next)
                c->next->previous = c;
        server->connections = c;
        server->connection_count++;
        error = nd_grpc_session_new(&events, c, &c->session);
        r = error ? -ENOMEM : sd_event_add_io(server->loop, &c->source, fd, EPOLLIN, on_socket, c);
        nd_error_free(error);
        if (r >= 0)
                r = sd_event_add_time_relative(server->loop, &c->stalled, CLOCK_MONOTONIC, UINT64_MAX / 4, ND_SECOND_US,
                                               on_stalled, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->stalled, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(server->loop, &c->writer, on_writer, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->writer, SD_EVENT_OFF);
        if (r < 0) {
                connection_free(c);
                return r;
        }
        flush(c); /* our SETTINGS */
        return 0;
}

static int on_pause_over([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct listener *l = userdata;

        (void) sd_event_source_set_enabled(l->source, SD_EVENT_ON);
        return 0;
}

static void pause_accepting(struct listener *l) {
        (void) sd_event_source_set_enabled(l->source, SD_EVENT_OFF);
        (void) sd_event_source_set_time_relative(l->pause, accept_pause_us);
        (void) sd_event_source_set_enabled(l->pause, SD_EVENT_ONESHOT);
}

static int on_listener([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct listener *l = userdata;
        nd_autoclose int peer = -EBADF;

        if (l->server->connection_count >= ND_CONNECTIONS) {
                pause_accepting(l);
                return 0;
        }
        peer = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer < 0) {
                if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                        pause_accepting(l);
                return 0;
        }
        if (peer_allowed(peer))
                (void) connection_start(l->server, nd_take_fd(peer));
        return 0;
}

/* ---- the server ---- */

struct nd_error *nd_grpc_server_new(sd_event *loop, const struct nd_grpc_server_settings *settings,
                                    struct nd_grpc_server **ret) {
        struct nd_grpc_server *server = nd_new(struct nd_grpc_server);

        server->loop = sd_event_ref(loop);
        server->settings = *settings;
        if (server->settings.stalled_us == 0)
                server->settings.stalled_us = stalled_default_us;
        *ret = server;
        return nullptr;
}

static void listener_free(struct listener *l) {
        sd_event_source_disable_unref(l->source);
        sd_event_source_disable_unref(l->pause);
        nd_close_fd(&l->fd);
        free(l);
}

void nd_grpc_server_free(struct nd_grpc_server *server) {
        if (!server)
                return;
        while (server->listeners) {
                struct listener *l = server->listeners;

                server->listeners = l->next;
                listener_free(l);
        }
        for (struct connection *c = server->connections, *next; c; c = next) {
                next = c->next;
                flush(c); /* recent answers */
                connection_free(c);
        }
        /* Calls that their handlers have not finished yet. */
        for (struct ticket *t = server->tickets; t; t = t->next) {
                t->server = nullptr;
                t->deadline = sd_event_source_disable_unref(t->deadline);
        }
        sd_event_unref(server->loop);
        free(server);
}

struct nd_error *nd_grpc_server_listen(struct nd_grpc_server *server, int fd) {
        struct listener *l = nd_new(struct listener);
        int r;

        *l = (struct listener) {.server = server, .next = server->listeners, .fd = fd};
        r = sd_event_add_io(server->loop, &l->source, fd, EPOLLIN, on_listener, l);
        if (r >= 0)
                r = sd_event_add_time_relative(server->loop, &l->pause, CLOCK_MONOTONIC, UINT64_MAX / 4, 0, on_pause_over, l);
        if (r >= 0)
                r = sd_event_source_set_enabled(l->pause, SD_EVENT_OFF);
        if (r < 0) {
                listener_free(l);
                return nd_error_new(ND_INTERNAL, -r, "watch a listening socket");
        }
        server->listeners = l;
        return nullptr;
}

size_t nd_grpc_server_connections(const struct nd_grpc_server *server) {
        return server->connection_count;
}

size_t nd_grpc_server_calls(const struct nd_grpc_server *server) {
        return server->call_count;
}
