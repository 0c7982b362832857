/* SPDX-License-Identifier: Apache-2.0 */
/* tcp-relay.c - TCP: copies between the client's socket and the server's
 *
 * Theory of operation
 *   Both sockets are registered with epoll once, edge-triggered for both directions. Each direction
 *   has its own state. Small amounts are copied with one recv() and one send(). A sender that fills
 *   the buffer is spliced through a pipe from then on, until it sends little again (a sender
 *   that is merely slower than we are stays spliced). Data that a slow receiver does not accept
 *   waits in that pipe and nothing more is read, so TCP flow control slows the sender.
 *   A direction that has more than @ROUNDS pieces to move lets others go first. Pipes are pooled:
 *   an idle connection has none.
 *   The end of one direction (FIN) is forwarded as such; a reset ends both with a reset. If the
 *   server refuses the connection, the client gets a reset at once.
 * Invariant  a relay is freed after the events of one epoll_wait() are handled: they may still
 * refer to it. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "rootless/forward/forwarder.h"

enum {
        ACCEPTS = 64,      /* per turn and listener */
        ROUNDS = 16,       /* pieces per turn and direction */
        BULK = 16 * 1024,  /* a sender of this much at once is spliced */
        LITTLE = 2 * 1024, /* a sender of this little is copied again */
        ENDS = 2,
};

struct direction {
        int pipe[2];    /* -1 = none */
        uint32_t bytes; /* in the pipe */
        bool bulk;
        bool full; /* the receiver accepts no more until the next EPOLLOUT */
        bool last; /* the sender may have closed: read to EOF even after a short read */
        bool ended;
        bool shut;
};

enum { CLIENT, SERVER };

struct end {
        struct rootless_watch watch;
        struct rootless_relay *relay;
        int fd;
};

struct rootless_relay {
        struct end ends[ENDS];
        struct direction directions[ENDS]; /* indexed by the sender */
        struct rootless_relay *next;       /* in relays_pending or relays_closed */
        struct rootless_listener *listener;
        bool connected;
        bool pending;
        bool closed;
};

/* ---- pipes ---- */

static bool pipe_get(struct rootless_forwarder *f, struct direction *direction) {
        if (direction->pipe[0] >= 0)
                return true;
        if (f->pipe_count > 0) {
                memcpy(direction->pipe, f->pipes[--f->pipe_count], sizeof direction->pipe);
                return true;
        }
        if (pipe2(direction->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
                direction->pipe[0] = direction->pipe[1] = -1;
                return false;
        }
        /* The pipe size of a user is limited; a smaller pipe works, too. */
        (void) fcntl(direction->pipe[1], F_SETPIPE_SZ, FORWARDER_PIPE_BYTES);
        return true;
}

/* A pipe that still holds data cannot be reused. */
static void pipe_put(struct rootless_forwarder *f, struct direction *direction) {
        if (direction->pipe[0] < 0)
                return;
        if (direction->bytes == 0 && f->pipe_count < FORWARDER_PIPES) {
                memcpy(f->pipes[f->pipe_count++], direction->pipe, sizeof direction->pipe);
        } else {
                (void) close(direction->pipe[0]);
                (void) close(direction->pipe[1]);
        }
        direction->pipe[0] = direction->pipe[1] = -1;
}

/* ---- the end of a relay ---- */

static void reset(int fd) {
        struct linger now = {.l_onoff = 1};

        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void close_relay(struct rootless_forwarder *f, struct rootless_relay *r, bool broken) {
        if (r->closed)
                return;
        r->closed = true;
        for (int i = 0; i < ENDS; i++) {
                pipe_put(f, &r->directions[i]);
                if (broken)
                        reset(r->ends[i].fd);
                rootless_forwarder_unwatch(f, &r->ends[i].fd);
        }
        rootless_listener_unref(r->listener);
        r->listener = nullptr;
        nd_assert(f->relay_count > 0);
        f->relay_count--;
        if (!r->pending) { /* else rootless_relay_continue() adds it */
                r->next = f->relays_closed;
                f->relays_closed = r;
        }
        if (f->paused_us > 0)
                rootless_listener_resume_all(f);
}

void rootless_relay_free_closed(struct rootless_forwarder *f) {
        for (struct rootless_relay *r = nd_take_ptr(f->relays_closed), *next; r; r = next) {
                next = r->next;
                free(r);
        }
}

/* ---- one direction ---- */

enum outcome { MORE, WAIT, BROKEN };

static void count(struct rootless_relay *r, int from, size_t bytes) {
        *(from == CLIENT ? &r->listener->bytes_in : &r->listener->bytes_out) += bytes;
}

static enum outcome drain(struct rootless_relay *r, int from) {
        struct direction *direction = &r->directions[from];
        ssize_t n = splice(direction->pipe[0], nullptr, r->ends[!from].fd, nullptr, direction->bytes,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

        direction->full = n < 0 && errno == EAGAIN;
        if (n < 0)
                return errno == EAGAIN ? WAIT : errno == EINTR ? MORE : BROKEN;
        direction->bytes -= (uint32_t) n;
        count(r, from, (size_t) n);
        return MORE;
}

static enum outcome fill(struct rootless_relay *r, int from) {
        struct direction *direction = &r->directions[from];
        ssize_t n = splice(r->ends[from].fd, nullptr, direction->pipe[1], nullptr, FORWARDER_PIPE_BYTES,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

        if (n < 0 && errno == EINTR)
                return MORE;
        if (n < 0 && errno == EAGAIN)
                return WAIT;
        if (n < 0)
                return BROKEN;
        direction->ended = n == 0;
        direction->bytes = (uint32_t) n;
        direction->bulk = n > LITTLE;
        return MORE;
}

/* Puts data that the receiver does not accept into the pipe, which is empty and larger than the
 * buffer. */
static enum outcome copy_rest(struct rootless_forwarder *f, struct rootless_relay *r, int from, const char *rest,
                              size_t length) {
        struct direction *direction = &r->directions[from];

        if (!pipe_get(f, direction) || write(direction->pipe[1], rest, length) != (ssize_t) length)
                return BROKEN;
        direction->bytes = (uint32_t) length;
        return MORE;
}

static enum outcome copy(struct rootless_forwarder *f, struct rootless_relay *r, int from) {
        struct direction *direction = &r->directions[from];
        ssize_t n = recv(r->ends[from].fd, f->buffer, BULK, MSG_DONTWAIT), sent;

        if (n < 0 && errno == EINTR)
                return MORE;
        if (n < 0)
                return errno == EAGAIN ? WAIT : BROKEN;
        if (n == 0) {
                direction->ended = true;
                return MORE;
        }
        direction->bulk = n == BULK;
        sent = send(r->ends[!from].fd, f->buffer, (size_t) n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
                return BROKEN;
        if (sent < 0)
                sent = 0;
        count(r, from, (size_t) sent);
        if (sent < n)
                return copy_rest(f, r, from, f->buffer + sent, (size_t) (n - sent));
        /* A short read means that nothing is left; epoll reports new data. */
        return direction->bulk || direction->last ? MORE : WAIT;
}

static enum outcome step(struct rootless_forwarder *f, struct rootless_relay *r, int from) {
        struct direction *direction = &r->directions[from];

        if (direction->bytes > 0)
                return direction->full ? WAIT : drain(r, from);
        if (direction->ended) {
                if (!direction->shut)
                        (void) shutdown(r->ends[!from].fd, SHUT_WR);
                direction->shut = true;
                return WAIT;
        }
        if (!direction->bulk || !pipe_get(f, direction))
                return copy(f, r, from);
        return fill(r, from);
}

/* Moves as much as possible. */
static enum outcome move(struct rootless_forwarder *f, struct rootless_relay *r, int from) {
        struct direction *direction = &r->directions[from];
        enum outcome outcome = MORE;

        for (int i = 0; i < ROUNDS && outcome == MORE; i++)
                outcome = step(f, r, from);
        if (direction->bytes == 0 && outcome == WAIT)
                pipe_put(f, direction);
        return outcome;
}

/* ---- both directions ---- */

static void run(struct rootless_forwarder *f, struct rootless_relay *r, bool from_client, bool from_server) {
        enum outcome client = from_client ? move(f, r, CLIENT) : WAIT,
                     server = client != BROKEN && from_server ? move(f, r, SERVER) : WAIT;

        if (client == BROKEN || server == BROKEN) {
                close_relay(f, r, true);
        } else if (r->directions[CLIENT].shut && r->directions[SERVER].shut) {
                close_relay(f, r, false);
        } else if ((client == MORE || server == MORE) && !r->pending) {
                r->pending = true;
                r->next = f->relays_pending;
                f->relays_pending = r;
        }
}

void rootless_relay_continue(struct rootless_forwarder *f) {
        for (struct rootless_relay *r = nd_take_ptr(f->relays_pending), *next; r; r = next) {
                next = r->next;
                r->pending = false;
                if (r->closed) {
                        r->next = f->relays_closed;
                        f->relays_closed = r;
                } else {
                        run(f, r, true, true);
                }
        }
}

static void on_event(struct rootless_forwarder *f, struct rootless_watch *watch, uint32_t events) {
        struct end *end = (struct end *) watch;
        struct rootless_relay *r = end->relay;
        bool client = end == &r->ends[CLIENT];
        bool reads = events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);

        if (r->closed)
                return;
        if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                r->directions[client ? CLIENT : SERVER].last = true;
        if (!r->connected) {
                int error = 0;
                socklen_t length = sizeof error;

                if (client)
                        return; /* not connected to the server yet: read it later */
                if (getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error != 0) {
                        r->listener->refused++;
                        close_relay(f, r, true);
                        return;
                }
                if (!(events & EPOLLOUT))
                        return;
                r->connected = true;
                run(f, r, true, true);
                return;
        }
        /* A writable receiver gets the data that waits in its pipe. */
        if (events & EPOLLOUT)
                r->directions[client ? SERVER : CLIENT].full = false;
        run(f, r, client ? reads : events & EPOLLOUT && r->directions[CLIENT].bytes > 0,
            client ? events & EPOLLOUT && r->directions[SERVER].bytes > 0 : reads);
}

/* ---- new connections ---- */

static int dial(struct rootless_forwarder *f, struct rootless_listener *l, const union rootless_sockaddr *client, bool port) {
        union rootless_sockaddr target;
        enum rootless_socket_kind kind;
        int fd, saved;

        rootless_listener_target(f, l, &target, &kind);
        fd = rootless_socket_pool_take(f, kind);
        if (fd < 0)
                return fd;
        rootless_socket_pool_bind_client(f, fd, client, &target, port);
        if (connect(fd, &target.any, rootless_sockaddr_length(&target)) == 0 || errno == EINPROGRESS)
                return fd;
        saved = errno;
        (void) close(fd);
        /* The client's port already has a connection to this server, through another published
         * port; keep only the address. */
        return saved == EADDRNOTAVAIL && port ? dial(f, l, client, false) : -saved;
}

static void open_relay(struct rootless_forwarder *f, struct rootless_listener *l, int client_fd, int server_fd) {
        struct rootless_relay *r = nd_new(struct rootless_relay);
        const int fds[ENDS] = {client_fd, server_fd};
        struct nd_error *error = nullptr;

        r->listener = l;
        l->users++;
        l->connections++;
        f->relay_count++;
        for (int i = 0; i < ENDS; i++) {
                r->ends[i] = (struct end) {.watch = {.ready = on_event}, .relay = r, .fd = fds[i]};
                r->directions[i] = (struct direction) {.pipe = {-1, -1}};
        }
        for (int i = 0; i < ENDS && !error; i++)
                error = rootless_forwarder_watch(f, fds[i], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &r->ends[i].watch);
        if (error)
                close_relay(f, r, true);
        nd_error_free(error);
}

/* Accepts one client; false when no more can be accepted now. */
static bool accept_one(struct rootless_forwarder *f, struct rootless_listener *l) {
        union rootless_sockaddr client = {};
        socklen_t length = sizeof client;
        union rootless_sockaddr target;
        enum rootless_socket_kind kind;
        int fd, server;

        rootless_listener_target(f, l, &target, &kind);
        if (f->relay_count >= f->relay_most || !rootless_socket_pool_has(f, kind, 2)) {
                rootless_listener_pause(f, l);
                return false;
        }
        fd = accept4(l->fd, &client.any, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                /* the listener stays open: clients wait in its backlog */
                rootless_listener_pause(f, l);
        if (fd < 0)
                /* that client is gone; try the next */
                return errno == EINTR || errno == ECONNABORTED;
        server = dial(f, l, &client, true);
        if (server < 0) {
                l->refused++;
                reset(fd);
                (void) close(fd);
                return true;
        }
        open_relay(f, l, fd, server);
        return true;
}

void rootless_relay_accept(struct rootless_forwarder *f, struct rootless_listener *l) {
        for (int i = 0; i < ACCEPTS && accept_one(f, l); i++)
                ;
        rootless_socket_pool_refill(f);
}
