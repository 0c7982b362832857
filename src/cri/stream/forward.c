/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c - see forward.h
 *
 * Theory of operation
 *   For each of its own connections the client opens two streams with the same identity: "data",
 *   and "error" for error messages. Both together are a tunnel. Once both exist, a socket is
 *   created in the pod's network namespace and connected to the pod's localhost (@CONNECTING, by
 *   IPv4, then by IPv6), so that no program is needed in the pod, neither the pod's nor ours. Then
 *   data flows both ways (@OPEN). Each direction ends by itself, as with TCP; a tunnel whose
 *   directions have both ended is freed.
 *   Data that a slow server has not read yet is buffered here. All tunnels of a connection together
 *   may buffer WAITING bytes; beyond that the client is not read. A client that does not read stops
 *   the reading from its own servers. Other clients are not affected.
 * Owns       the sockets and the tunnels. Refers to the sandbox by ID only. */
#include "cri/stream/forward.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cri/namespace/namespaces.h"
#include "sys/netns.h"

enum {
        TUNNELS = 128,
        WAITING = 1 << 20,
        PIECE = 32 << 10,
        IDENTITY = 64, /* with the terminating NUL */
};

/* From the first stream to the second. */
static constexpr uint64_t second_stream_timeout_us = 30 * ND_SECOND_US;
static constexpr uint64_t connect_timeout_us = 15 * ND_SECOND_US;

enum phase {
        OPENING,
        CONNECTING,
        OPEN,
};

struct session;

struct tunnel {
        struct session *session;
        enum phase phase;
        char identity[IDENTITY];
        uint16_t port;
        uint32_t data, error;   /* stream IDs; 0 = not open yet */
        sd_event_source *timer; /* for the second stream, then for the connection */
        int family, failure;    /* failure: errno of the previous family */
        int socket;
        sd_event_source *source;
        struct nd_text pending; /* for the server */
        bool client_over, server_over;
};

struct session {
        struct cri_stream_connection *connection;
        struct cri_stream_request *request;
        size_t waiting; /* bytes in all tunnels' pending */
        nd_vector(struct tunnel *) tunnels;
};

static void tunnel_free(struct tunnel *tunnel) {
        sd_event_source_disable_unref(tunnel->timer);
        sd_event_source_disable_unref(tunnel->source);
        nd_close_fd(&tunnel->socket);
        nd_text_done(&tunnel->pending);
        free(tunnel);
}

static void on_gone(void *userdata) {
        struct session *session = userdata;

        nd_vector_each (tunnel, &session->tunnels)
                tunnel_free(*tunnel);
        nd_vector_done(&session->tunnels);
        cri_stream_request_free(session->request);
        free(session);
}

static bool is_busy(const struct session *session) {
        return session->waiting > WAITING;
}

/* Closes both streams; sends an error, if there is one, on the error stream. Takes the error, frees
 * the tunnel. */
static void tunnel_end(struct tunnel *tunnel, struct nd_error *error) {
        nd_autoerror struct nd_error *owned = error;
        struct session *session = tunnel->session;
        struct cri_stream_connection *connection = session->connection;
        uint32_t streams[] = {tunnel->data, tunnel->error};

        if (owned && tunnel->error != 0) {
                nd_autofree char *words = nd_format("error forwarding port %u to pod %s: %s", tunnel->port,
                                                    session->request->container, nd_error_text(owned));

                cri_stream_connection_write(connection, tunnel->error, words, strlen(words));
        }
        for (size_t i = 0; i < nd_count_of(streams); i++) {
                cri_stream_connection_attach(connection, streams[i], nullptr);
                cri_stream_connection_end_stream(connection, streams[i]);
        }
        session->waiting -= tunnel->pending.length;
        for (size_t i = 0; i < session->tunnels.count; i++)
                if (session->tunnels.items[i] == tunnel)
                        session->tunnels.items[i] = session->tunnels.items[--session->tunnels.count];
        tunnel_free(tunnel);
}

/* ---- data ---- */

static void watch_again(struct tunnel *tunnel) {
        bool room = cri_stream_connection_room(tunnel->session->connection) > 0;
        uint32_t events = 0;

        if (!tunnel->server_over && room)
                events |= EPOLLIN;
        if (tunnel->pending.length > 0)
                events |= EPOLLOUT;
        (void) sd_event_source_set_io_events(tunnel->source, events);
        /* epoll would report a hangup again and again although nothing can be done about it:
         * on_room() and the client's data wake the tunnel. */
        (void) sd_event_source_set_enabled(tunnel->source, events == 0 ? SD_EVENT_OFF : SD_EVENT_ON);
}

/* False if sending to the server failed. */
static bool push(struct tunnel *tunnel) {
        size_t done = 0;
        ssize_t n = 0;

        while (done < tunnel->pending.length &&
               (n = send(tunnel->socket, tunnel->pending.bytes + done, tunnel->pending.length - done, MSG_NOSIGNAL)) > 0)
                done += (size_t) n;
        if (done > 0) {
                memmove(tunnel->pending.bytes, tunnel->pending.bytes + done, tunnel->pending.length - done);
                tunnel->pending.length -= done;
                tunnel->session->waiting -= done;
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR)
                return false;
        if (tunnel->client_over && tunnel->pending.length == 0)
                (void) shutdown(tunnel->socket, SHUT_WR);
        return true;
}

/* False if the connection to the server failed. */
static bool pull(struct tunnel *tunnel) {
        struct cri_stream_connection *connection = tunnel->session->connection;
        size_t most = cri_stream_connection_room(connection);
        char piece[PIECE];
        ssize_t n;

        if (most == 0)
                return true;
        n = recv(tunnel->socket, piece, most < sizeof piece ? most : sizeof piece, 0);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        if (n > 0) {
                cri_stream_connection_write(connection, tunnel->data, piece, (size_t) n);
                return true;
        }
        tunnel->server_over = true;
        cri_stream_connection_end_stream(connection, tunnel->data);
        return true;
}

static bool is_over(const struct tunnel *tunnel) {
        return tunnel->server_over && tunnel->client_over && tunnel->pending.length == 0;
}

/* May free the tunnel. */
static void carry(struct tunnel *tunnel, uint32_t events) {
        bool well = (events & EPOLLOUT) == 0 || push(tunnel);

        if (well && !tunnel->server_over && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
                well = pull(tunnel);
        else if ((events & (EPOLLHUP | EPOLLERR)) != 0)
                well = false;
        if (!well || is_over(tunnel))
                tunnel_end(tunnel, nullptr);
        else
                watch_again(tunnel);
}

static void on_room(void *userdata) {
        struct session *session = userdata;

        nd_vector_each (tunnel, &session->tunnels)
                if ((*tunnel)->phase == OPEN)
                        watch_again(*tunnel);
}

/* ---- connection into the pod ---- */

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata);

/* Starts to connect with the tunnel's address family. */
static struct nd_error *dial(struct tunnel *tunnel) {
        const struct cri_stream_parts *parts = cri_stream_connection_parts(tunnel->session->connection);
        struct sockaddr_in four = {
                .sin_family = AF_INET, .sin_port = htons(tunnel->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr_in6 six = {
                .sin6_family = AF_INET6, .sin6_port = htons(tunnel->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        bool by_four = tunnel->family == AF_INET;
        nd_autofree char *network = nullptr;
        struct cri_sandbox *sandbox = nullptr;

        tunnel->source = sd_event_source_disable_unref(tunnel->source);
        nd_close_fd(&tunnel->socket);
        nd_try(cri_pod_table_find_sandbox(parts->pods, tunnel->session->request->container, &sandbox));
        if (sandbox->state != SANDBOX_READY)
                return nd_error_new(ND_PRECONDITION, 0, "the pod has been stopped");
        network = cri_namespaces_path(parts->config, parts->pins, sandbox, POD_NET);
        nd_try(nd_netns_socket(network, tunnel->family, SOCK_STREAM, &tunnel->socket));
        if (connect(tunnel->socket, by_four ? (struct sockaddr *) &four : (struct sockaddr *) &six,
                    by_four ? sizeof four : sizeof six) < 0 &&
            errno != EINPROGRESS)
                return nd_error_new(ND_UNAVAILABLE, errno, "connect to localhost:%u in the pod", tunnel->port);
        if (sd_event_add_io(parts->loop, &tunnel->source, tunnel->socket, EPOLLOUT, on_socket, tunnel) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch the connection into the pod");
        return nullptr;
}

/* Handles the result of connect(). May free the tunnel. */
static void take_answer(struct tunnel *tunnel) {
        socklen_t length = sizeof(int);
        struct nd_error *error = nullptr;
        int failure = 0;

        (void) getsockopt(tunnel->socket, SOL_SOCKET, SO_ERROR, &failure, &length);
        if (failure == 0) {
                tunnel->phase = OPEN;
                tunnel->timer = sd_event_source_disable_unref(tunnel->timer);
                (void) setsockopt(tunnel->socket, IPPROTO_TCP, TCP_NODELAY, &(int) {1}, sizeof(int));
                carry(tunnel, EPOLLOUT);
                return;
        }
        if (tunnel->family == AF_INET) {
                tunnel->failure = failure;
                tunnel->family = AF_INET6;
                error = dial(tunnel);
                if (!error)
                        return;
        }
        nd_error_free(error); /* report the error of IPv4, which users expect */
        tunnel_end(tunnel, nd_error_new(ND_UNAVAILABLE, tunnel->failure, "connect to localhost:%u in the pod", tunnel->port));
}

static int on_socket([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct tunnel *tunnel = userdata;
        struct session *session = tunnel->session;
        struct cri_stream_connection *connection = session->connection;
        bool was_busy = is_busy(session), resume;

        if (tunnel->phase == CONNECTING)
                take_answer(tunnel);
        else
                carry(tunnel, events);
        resume = was_busy && !is_busy(session);
        cri_stream_connection_flush(connection);
        if (resume)
                cri_stream_connection_resume(connection);
        return 0;
}

static int on_late([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct tunnel *tunnel = userdata;
        struct session *session = tunnel->session;
        bool was_busy = is_busy(session), resume;

        if (tunnel->phase == OPENING)
                tunnel_end(tunnel, nd_error_new(ND_DEADLINE, 0, "the client did not open the second stream within %llu s",
                                                (unsigned long long) (second_stream_timeout_us / ND_SECOND_US)));
        else
                tunnel_end(tunnel, nd_error_new(ND_DEADLINE, 0, "connecting to localhost:%u in the pod timed out after %llu s",
                                                tunnel->port, (unsigned long long) (connect_timeout_us / ND_SECOND_US)));
        resume = was_busy && !is_busy(session);
        cri_stream_connection_flush(session->connection);
        if (resume)
                cri_stream_connection_resume(session->connection);
        return 0;
}

/* ---- streams ---- */

static struct tunnel *tunnel_find(const struct session *session, const char *identity) {
        nd_vector_each (tunnel, &session->tunnels)
                if (nd_streq((*tunnel)->identity, identity))
                        return *tunnel;
        return nullptr;
}

static struct tunnel *tunnel_new(struct session *session, const char *identity, uint16_t port) {
        struct tunnel *tunnel;

        if (session->tunnels.count >= TUNNELS)
                return nullptr;
        tunnel = nd_new(struct tunnel);
        tunnel->session = session;
        memcpy(tunnel->identity, identity, strlen(identity));
        tunnel->port = port;
        tunnel->family = AF_INET;
        tunnel->socket = -EBADF;
        /* never reached: reading stops at half of it plus one chunk */
        tunnel->pending.ceiling = 2 * WAITING;
        nd_vector_push(&session->tunnels, tunnel);
        (void) sd_event_add_time_relative(cri_stream_connection_parts(session->connection)->loop, &tunnel->timer,
                                          CLOCK_MONOTONIC, second_stream_timeout_us, ND_SECOND_US, on_late, tunnel);
        return tunnel;
}

/* Old clients send no identity: they open the error stream first, and the data stream has the next
 * client stream ID. */
static bool identity_of(const struct cri_stream_event *event, bool is_data, char ret[static IDENTITY]) {
        nd_autofree char *made =
                *event->identity ? nd_strdup(event->identity) : nd_format("%u", is_data ? event->stream - 2 : event->stream);

        if (strlen(made) >= IDENTITY)
                return false;
        memcpy(ret, made, strlen(made) + 1);
        return true;
}

static struct tunnel *tunnel_of(struct session *session, const struct cri_stream_event *event, bool *ret_is_data) {
        struct tunnel *tunnel;
        uint64_t number;
        char identity[IDENTITY];

        *ret_is_data = nd_streq(event->type, "data");
        if (!*ret_is_data && !nd_streq(event->type, "error"))
                return nullptr;
        if (nd_text_parse_u64(event->port, UINT16_MAX, &number) < 0 || number == 0 ||
            !identity_of(event, *ret_is_data, identity))
                return nullptr;
        tunnel = tunnel_find(session, identity) ?: tunnel_new(session, identity, (uint16_t) number);
        if (!tunnel || tunnel->port != number || (*ret_is_data ? tunnel->data : tunnel->error) != 0)
                return nullptr;
        return tunnel;
}

static void take_stream(struct session *session, const struct cri_stream_event *event) {
        struct cri_stream_connection *connection = session->connection;
        struct nd_error *error;
        bool is_data;
        struct tunnel *tunnel = tunnel_of(session, event, &is_data);

        if (!tunnel) {
                cri_stream_connection_refuse(connection, event->stream);
                return;
        }
        *(is_data ? &tunnel->data : &tunnel->error) = event->stream;
        cri_stream_connection_attach(connection, event->stream, tunnel);
        cri_stream_connection_accept(connection, event->stream);
        if (tunnel->data == 0 || tunnel->error == 0)
                return;
        tunnel->phase = CONNECTING;
        (void) sd_event_source_set_time_relative(tunnel->timer, connect_timeout_us);
        error = dial(tunnel);
        if (error)
                tunnel_end(tunnel, error);
}

/* May free the tunnel. */
static void take_data(struct tunnel *tunnel, const char *bytes, size_t length) {
        nd_text_append(&tunnel->pending, bytes, length);
        tunnel->session->waiting += length;
        if (tunnel->phase == OPEN)
                carry(tunnel, EPOLLOUT);
}

static void take_end(struct tunnel *tunnel) {
        tunnel->client_over = true;
        if (tunnel->phase == OPEN)
                carry(tunnel, EPOLLOUT);
}

static bool on_event(const struct cri_stream_event *event, void *userdata) {
        struct session *session = userdata;
        struct tunnel *tunnel = event->attachment;
        bool is_data = tunnel && event->stream == tunnel->data;

        if (event->kind == STREAM_OPENED)
                take_stream(session, event);
        else if (event->kind == STREAM_DATA && is_data && !tunnel->client_over)
                take_data(tunnel, event->bytes, event->length);
        else if (event->kind == STREAM_FIN && is_data)
                take_end(tunnel);
        else if (event->kind == STREAM_RESET && tunnel)
                tunnel_end(tunnel, nullptr);
        return !is_busy(session);
}

static void *begin(struct cri_stream_connection *connection, struct cri_stream_request *request,
                   [[maybe_unused]] const char *protocol) {
        struct session *session = nd_new(struct session);

        session->connection = connection;
        session->request = request;
        return session;
}

static const char *const protocols[] = {"portforward.k8s.io", nullptr};
static const char *const channel_protocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", nullptr};

const struct cri_stream_session_type cri_stream_forward = {
        .path = "/portforward/",
        .protocols = protocols,
        .channel_protocols = channel_protocols,
        .streams = 2 * TUNNELS,
        .begin = begin,
        .event = on_event,
        .room = on_room,
        .gone = on_gone,
};
