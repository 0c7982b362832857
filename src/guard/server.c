/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h
 *
 * Theory of operation
 *   libmicrohttpd does HTTP and TLS and keeps its sockets in an epoll of its own. That epoll's descriptor and the time-out it asks for are
 *   sources of our loop; both lead to run(), which lets it work. A request whose answer is not there when its handler returns is suspended;
 *   the answer resumes it, and libmicrohttpd calls accept_part() once more to take it. */
#include "guard/server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"

enum {
        IDLE_SECONDS = 120, /* of a kept connection; longer than the API server's own */
        BACKLOG = 512,
};

struct guard_server {
        sd_event *loop;
        struct MHD_Daemon *daemon;
        sd_event_source *ready, *timer;
        struct guard_server_settings settings;
        nd_vector(struct guard_exchange *) waiting; /* whose connections are suspended */
        uint16_t port;
        int fd;
};

struct guard_exchange {
        struct guard_server *server;
        struct MHD_Connection *connection;
        char *method, *path;
        struct nd_text body;
        struct MHD_Response *response;
        unsigned status;
        bool handled, suspended;
};

static void run(struct guard_server *server);

const char *guard_exchange_method(const struct guard_exchange *exchange) {
        return exchange->method;
}

const char *guard_exchange_path(const struct guard_exchange *exchange) {
        return exchange->path;
}

const char *guard_exchange_body(const struct guard_exchange *exchange, size_t *ret_length) {
        *ret_length = exchange->body.length;
        return nd_text_get(&exchange->body);
}

static void stop_waiting(struct guard_exchange *exchange) {
        struct guard_server *server = exchange->server;

        for (size_t i = 0; i < server->waiting.count; i++)
                if (server->waiting.items[i] == exchange) {
                        server->waiting.items[i] = server->waiting.items[--server->waiting.count];
                        return;
                }
}

void guard_exchange_answer(struct guard_exchange *exchange, unsigned status, const char *content_type, const char *text,
                           size_t length) {
        if (exchange->response)
                return;
        exchange->response = MHD_create_response_from_buffer_copy(length, text);
        if (!exchange->response)
                abort(); /* no memory, as everywhere */
        (void) MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        exchange->status = status;
        nd_text_done(&exchange->body);
        if (exchange->suspended) {
                exchange->suspended = false;
                stop_waiting(exchange);
                MHD_resume_connection(exchange->connection);
                (void) sd_event_source_set_time_relative(exchange->server->timer, 0);
                (void) sd_event_source_set_enabled(exchange->server->timer, SD_EVENT_ONESHOT);
        }
}

static enum MHD_Result send_answer(struct guard_exchange *exchange) {
        return MHD_queue_response(exchange->connection, exchange->status, exchange->response);
}

static struct guard_exchange *exchange_new(struct guard_server *server, struct MHD_Connection *connection, const char *method,
                                           const char *path) {
        struct guard_exchange *exchange = nd_new(struct guard_exchange);

        exchange->server = server;
        exchange->connection = connection;
        exchange->method = nd_strdup(method);
        exchange->path = nd_strdup(path);
        exchange->body = ND_TEXT(server->settings.body_ceiling);
        return exchange;
}

/* libmicrohttpd's way: once when the head is there, then with each part of the body, then without one, and again after a resumption. */
static enum MHD_Result accept_part(void *userdata, struct MHD_Connection *connection, const char *path, const char *method,
                                   [[maybe_unused]] const char *version, const char *part, size_t *part_length,
                                   void **of_request) {
        struct guard_exchange *exchange = *of_request;

        if (!exchange) {
                *of_request = exchange_new(userdata, connection, method, path);
                return MHD_YES;
        }
        if (*part_length > 0) {
                nd_text_append(&exchange->body, part, *part_length);
                *part_length = 0;
                return MHD_YES;
        }
        if (exchange->body.overflow && !exchange->response)
                guard_exchange_answer(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "text/plain", "too large\n", 10);
        if (!exchange->handled && !exchange->response) {
                exchange->handled = true;
                exchange->server->settings.handle(exchange, exchange->server->settings.userdata);
        }
        if (exchange->response)
                return send_answer(exchange);
        exchange->suspended = true;
        nd_vector_push(&exchange->server->waiting, exchange);
        MHD_suspend_connection(connection);
        return MHD_YES;
}

static void finished([[maybe_unused]] void *userdata, [[maybe_unused]] struct MHD_Connection *connection, void **of_request,
                     [[maybe_unused]] enum MHD_RequestTerminationCode why) {
        struct guard_exchange *exchange = *of_request;

        *of_request = nullptr;
        if (!exchange)
                return;
        if (exchange->response)
                MHD_destroy_response(exchange->response);
        nd_text_done(&exchange->body);
        free(exchange->method);
        free(exchange->path);
        free(exchange);
}

static void run(struct guard_server *server) {
        int64_t wait_ms;

        (void) MHD_run(server->daemon);
        wait_ms = MHD_get_timeout64s(server->daemon);
        if (wait_ms < 0) {
                (void) sd_event_source_set_enabled(server->timer, SD_EVENT_OFF);
                return;
        }
        (void) sd_event_source_set_time_relative(server->timer, (uint64_t) wait_ms * ND_MS_US);
        (void) sd_event_source_set_enabled(server->timer, SD_EVENT_ONESHOT);
}

static int on_ready([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        run(userdata);
        return 0;
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        run(userdata);
        return 0;
}

void guard_server_free(struct guard_server *server) {
        if (!server)
                return;
        while (server->waiting.count > 0) /* libmicrohttpd does not stop before every connection goes on */
                guard_exchange_answer(server->waiting.items[server->waiting.count - 1], MHD_HTTP_SERVICE_UNAVAILABLE,
                                      "text/plain", "stopping\n", 9);
        if (server->daemon)
                (void) MHD_run(server->daemon);
        nd_vector_done(&server->waiting);
        sd_event_source_disable_unref(server->ready);
        sd_event_source_disable_unref(server->timer);
        if (server->daemon)
                MHD_stop_daemon(server->daemon); /* and with it the listening socket */
        else
                nd_close_fd(&server->fd);
        sd_event_unref(server->loop);
        free(server);
}

static struct nd_error *listen_at(struct guard_server *server) {
        struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_PASSIVE},
                        *found;
        struct sockaddr_storage bound = {};
        socklen_t length = sizeof bound;
        char port[8];
        int on = 1, r;

        (void) snprintf(port, sizeof port, "%u", server->settings.port);
        r = getaddrinfo(server->settings.address, port, &hints, &found);
        if (r != 0)
                return nd_error_new(ND_INVALID, 0, "listen: '%s' is no address: %s", server->settings.address,
                                    gai_strerror(r));
        server->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->fd >= 0)
                (void) setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        r = server->fd < 0 || bind(server->fd, found->ai_addr, found->ai_addrlen) < 0 || listen(server->fd, BACKLOG) < 0 ||
                            getsockname(server->fd, (struct sockaddr *) &bound, &length) < 0
                    ? errno
                    : 0;
        freeaddrinfo(found);
        if (r != 0)
                return nd_error_new(ND_UNAVAILABLE, r, "listen on %s port %s", server->settings.address, port);
        server->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *) &bound)->sin6_port
                                                         : ((struct sockaddr_in *) &bound)->sin_port);
        return nullptr;
}

static struct nd_error *start(struct guard_server *server) {
        const union MHD_DaemonInfo *info;
        int r;

        server->daemon = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_USE_TLS | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, nullptr, nullptr, accept_part,
                server, MHD_OPTION_LISTEN_SOCKET, server->fd, MHD_OPTION_HTTPS_MEM_CERT, server->settings.certificate,
                MHD_OPTION_HTTPS_MEM_KEY, server->settings.key, MHD_OPTION_NOTIFY_COMPLETED, finished, server,
                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned) IDLE_SECONDS, MHD_OPTION_CONNECTION_LIMIT,
                server->settings.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) (64 << 10), MHD_OPTION_END);
        if (!server->daemon)
                return nd_error_new(ND_INVALID, 0, "start HTTPS: do certificate and key belong together?");
        info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        r = sd_event_add_io(server->loop, &server->ready, info->epoll_fd, EPOLLIN, on_ready, server);
        if (r >= 0)
                r = sd_event_add_time_relative(server->loop, &server->timer, CLOCK_MONOTONIC, 0, 0, on_timer, server);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "event loop") : nullptr;
}

static void server_done(struct guard_server **server) {
        guard_server_free(*server);
}

struct nd_error *guard_server_new(sd_event *loop, const struct guard_server_settings *settings, struct guard_server **ret) {
        nd_cleanup(server_done) struct guard_server *server = nd_new(struct guard_server);

        server->fd = -EBADF;
        server->loop = sd_event_ref(loop);
        server->settings = *settings;
        nd_try(listen_at(server));
        nd_try(start(server));
        *ret = nd_take_ptr(server);
        return nullptr;
}

uint16_t guard_server_port(const struct guard_server *server) {
        return server->port;
}
