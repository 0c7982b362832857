/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h
 *
 * Theory of operation
 *   libmicrohttpd handles HTTP and TLS and keeps its sockets in an epoll of its own. The epoll's
 *   descriptor and its timeout are sources of our loop; both call run(), which lets libmicrohttpd
 *   work. A request whose handler returns without a response is suspended; the response resumes it,
 *   and libmicrohttpd calls accept_part() once more to fetch it.
 *   With a client CA, libmicrohttpd requests a certificate from every client; check_client()
 *   decides when the head of a request was received. A refused request is read to its end and
 *   discarded, so that the client sees the response. Connections without an accepted certificate
 *   are closed after @UNAUTHENTICATED_SECONDS of silence, or at an age of @unauthenticated_age_us.
 *   clients.h limits the use by one address.
 *   A daemon of libmicrohttpd keeps the certificate it was started with. To replace the
 *   certificate, a second daemon takes over the listening socket, and the first keeps its
 *   connections until the last is closed. These are the generations of a server, the newest
 *   last.
 *   drain.h ends a server without a failed request: responses announce the end of their connection,
 *   then the socket is closed, then connections that have no request. HTTP/1.1 has no message by
 *   which a server could end an idle connection, so a client may send a request just when its
 *   connection is closed; the time before, in which busy connections move away, makes that rare. */
#include "guard/server/server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vector.h"
#include "guard/server/clients.h"

enum {
        IDLE_SECONDS = 120, /* of an idle connection; longer than the API server's own timeout */
        BACKLOG = 512,
        TURNS = 16, /* calls of libmicrohttpd before other sources of the loop run */
        UNAUTHENTICATED_SECONDS = 10,
        DROPPED_BYTES = 1 << 20, /* of a refused request */
};

static constexpr uint64_t unauthenticated_age_us = 30 * ND_SECOND_US;
/* A client that has just connected is about to send its request. */
static constexpr uint64_t first_request_us = 2 * ND_SECOND_US;
static constexpr uint64_t sweep_interval_us = 5 * ND_SECOND_US;
/* The minimum between log lines that clients can cause. */
static constexpr uint64_t log_interval_us = 10 * ND_SECOND_US;

struct generation {
        struct guard_server *server;
        struct MHD_Daemon *daemon;
        char *client_ca; /* libmicrohttpd keeps the pointer */
        sd_event_source *ready, *timer;
        uint64_t due_us; /* when the timer fires; UINT64_MAX: never */
};

/* A connection. */
struct client {
        struct guard_server *server;
        struct MHD_Connection *connection;
        struct guard_address *address;
        struct guard_client_verdict verdict;
        uint64_t opened_us;
        size_t place; /* in the server's list */
        bool authenticated;
        bool used, in_request; /* a request was received, one is in progress */
};

struct guard_server {
        sd_event *loop;
        struct guard_client_auth *auth; /* nullptr: clients need no certificate */
        struct guard_clients *addresses;
        nd_vector(struct client *) clients;
        sd_event_source *sweeper;
        uint64_t refused, logged_us;
        nd_vector(struct generation *) generations;
        struct guard_server_settings settings;
        nd_vector(struct guard_exchange *) waiting; /* their connections are suspended */
        int fd;                                     /* listening; each generation has a copy */
        bool ends;                                  /* responses end their connections */
};

struct guard_exchange {
        struct guard_server *server;
        struct generation *generation;
        struct MHD_Connection *connection;
        struct client *client;
        char *method, *path;
        struct nd_text body;
        size_t taken, dropped; /* bytes of the body: charged to the client, and discarded */
        unsigned refusal;      /* HTTP status, set by the head or the body; 0: not refused */
        const char *refusal_text;
        struct MHD_Response *response;
        unsigned status;
        uint64_t begun_us;
        bool handled, suspended;
};

static void arm(struct generation *generation, uint64_t wait_us);

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

uint64_t guard_exchange_client(const struct guard_exchange *exchange) {
        return exchange->client->address->number;
}

static void drop_body(struct guard_exchange *exchange) {
        guard_clients_return_bytes(exchange->server->addresses, exchange->client->address, exchange->taken);
        exchange->taken = 0;
        nd_text_done(&exchange->body);
}

static void stop_waiting(struct guard_exchange *exchange) {
        struct guard_server *server = exchange->server;

        for (size_t i = 0; i < server->waiting.count; i++)
                if (server->waiting.items[i] == exchange) {
                        server->waiting.items[i] = server->waiting.items[--server->waiting.count];
                        return;
                }
}

void guard_exchange_respond(struct guard_exchange *exchange, unsigned status, const char *content_type, const char *text,
                            size_t length) {
        if (exchange->response)
                return;
        exchange->response = MHD_create_response_from_buffer_copy(length, text);
        if (!exchange->response)
                abort(); /* out of memory, as everywhere */
        (void) MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        if (exchange->refusal > 0 || exchange->server->ends)
                (void) MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_CONNECTION, "close");
        exchange->status = status;
        drop_body(exchange);
        if (exchange->handled && exchange->server->settings.answered)
                exchange->server->settings.answered(exchange->path, nd_clock_us() - exchange->begun_us,
                                                    exchange->server->settings.userdata);
        if (exchange->suspended) {
                exchange->suspended = false;
                stop_waiting(exchange);
                MHD_resume_connection(exchange->connection);
                arm(exchange->generation, 0);
        }
}

static enum MHD_Result send_response(struct guard_exchange *exchange) {
        return MHD_queue_response(exchange->connection, exchange->status, exchange->response);
}

/* ---- clients ---- */

static struct client *client_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info->socket_context;
}

static enum MHD_Result may_connect(void *userdata, const struct sockaddr *address, socklen_t length) {
        struct generation *generation = userdata;

        return guard_clients_may_connect(generation->server->addresses, address, length, nd_clock_us()) ? MHD_YES : MHD_NO;
}

static void set_idle_seconds(struct MHD_Connection *connection, unsigned seconds) {
        (void) MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

static void *client_new(struct guard_server *server, struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        struct client *client = nd_new(struct client);

        *client = (struct client) {.server = server,
                                   .connection = connection,
                                   .address = guard_clients_open(server->addresses, info->client_addr),
                                   .opened_us = nd_clock_us(),
                                   .place = server->clients.count};
        nd_vector_push(&server->clients, client);
        if (server->auth)
                set_idle_seconds(connection, UNAUTHENTICATED_SECONDS);
        return client;
}

static void client_free(struct client *client) {
        struct guard_server *server = client->server;
        struct client *last = server->clients.items[--server->clients.count];

        server->clients.items[client->place] = last;
        last->place = client->place;
        guard_clients_close(server->addresses, client->address, client->authenticated, nd_clock_us());
        free(client);
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **of_connection,
                          enum MHD_ConnectionNotificationCode what) {
        struct generation *generation = userdata;

        if (what == MHD_CONNECTION_NOTIFY_STARTED)
                *of_connection = client_new(generation->server, connection);
        else if (*of_connection)
                client_free(nd_take_ptr(*(struct client **) of_connection));
}

static void log_refusal(struct guard_server *server, const struct client *client) {
        uint64_t now_us = nd_clock_us();

        server->refused++;
        if (server->logged_us > 0 && now_us - server->logged_us < log_interval_us)
                return;
        server->logged_us = now_us;
        nd_log(ND_LOG_WARNING, "refused a client", nd_field("address", client->address->text),
               nd_field("name", client->verdict.name),
               nd_field("why", client->verdict.why ? client->verdict.why : "the certificate's name may read metrics only"));
}

static enum guard_right right_of(struct guard_server *server, struct client *client) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        enum guard_right right =
                guard_client_auth_check(server->auth, info ? info->tls_session : nullptr, time(nullptr), &client->verdict);

        if (right != GUARD_RIGHT_NONE && !client->authenticated) {
                client->authenticated = true;
                guard_clients_authenticated(server->addresses, client->address, nd_clock_us());
                set_idle_seconds(client->connection, IDLE_SECONDS);
        }
        return right;
}

/* Refuses the request unless the client's certificate gives the right to it. */
static void check_client(struct guard_exchange *exchange) {
        struct guard_server *server = exchange->server;
        enum guard_right needs =
                server->settings.needs ? server->settings.needs(exchange->method, exchange->path) : GUARD_RIGHT_REVIEW;

        if (!server->auth || right_of(server, exchange->client) >= needs)
                return;
        log_refusal(server, exchange->client);
        exchange->refusal = exchange->client->verdict.name[0] ? MHD_HTTP_FORBIDDEN : MHD_HTTP_UNAUTHORIZED;
        exchange->refusal_text = "the guard requires an accepted client certificate\n";
}

/* Closes connections that have shown no accepted certificate in time, idle or not. */
static int on_sweep(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct guard_server *server = userdata;
        uint64_t now_us = nd_clock_us();

        (void) sd_event_source_set_time_relative(source, sweep_interval_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        guard_clients_sweep(server->addresses, now_us);
        for (size_t i = 0; server->auth && i < server->clients.count; i++) {
                struct client *client = server->clients.items[i];
                const union MHD_ConnectionInfo *info =
                        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

                if (!client->authenticated && now_us - client->opened_us >= unauthenticated_age_us)
                        /* libmicrohttpd then sees the end of the connection */
                        (void) shutdown(info->connect_fd, SHUT_RDWR);
        }
        return 0;
}

/* ---- requests ---- */

static struct guard_exchange *exchange_new(struct generation *generation, struct MHD_Connection *connection,
                                           const char *method, const char *path) {
        struct guard_exchange *exchange = nd_new(struct guard_exchange);

        exchange->generation = generation;
        exchange->server = generation->server;
        exchange->connection = connection;
        exchange->client = client_of(connection);
        exchange->client->used = exchange->client->in_request = true;
        exchange->method = nd_strdup(method);
        exchange->path = nd_strdup(path);
        exchange->body = ND_TEXT(generation->server->settings.body_ceiling);
        check_client(exchange);
        return exchange;
}

static void refuse_body(struct guard_exchange *exchange, unsigned status, const char *text) {
        exchange->refusal = status;
        exchange->refusal_text = text;
        drop_body(exchange);
}

static enum MHD_Result take_part(struct guard_exchange *exchange, const char *part, size_t length) {
        if (exchange->refusal == 0 &&
            !guard_clients_take_bytes(exchange->server->addresses, exchange->client->address, length))
                refuse_body(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "too many request bodies in progress; retry\n");
        if (exchange->refusal == 0) {
                exchange->taken += length;
                nd_text_append(&exchange->body, part, length);
        }
        if (exchange->refusal == 0 && exchange->body.overflow)
                refuse_body(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "request body too large\n");
        if (exchange->refusal == 0)
                return MHD_YES;
        exchange->dropped += length;
        return exchange->dropped > DROPPED_BYTES ? MHD_NO : MHD_YES;
}

/* libmicrohttpd calls this when the head was received, with each part of the body, then without
 * one, and again after a resumption. */
static enum MHD_Result accept_part(void *userdata, struct MHD_Connection *connection, const char *path, const char *method,
                                   [[maybe_unused]] const char *version, const char *part, size_t *part_length,
                                   void **of_request) {
        struct guard_exchange *exchange = *of_request;

        if (!exchange) {
                *of_request = exchange_new(userdata, connection, method, path);
                return MHD_YES;
        }
        if (*part_length > 0) {
                enum MHD_Result result = take_part(exchange, part, *part_length);

                *part_length = 0;
                return result;
        }
        if (exchange->refusal > 0 && !exchange->response)
                guard_exchange_respond(exchange, exchange->refusal, "text/plain", exchange->refusal_text,
                                       strlen(exchange->refusal_text));
        if (!exchange->handled && !exchange->response) {
                exchange->handled = true;
                exchange->begun_us = nd_clock_us();
                exchange->server->settings.handle(exchange, exchange->server->settings.userdata);
        }
        if (exchange->response)
                return send_response(exchange);
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
        drop_body(exchange);
        exchange->client->in_request = false;
        free(exchange->method);
        free(exchange->path);
        free(exchange);
}

static void generation_free(struct generation *generation) {
        if (!generation)
                return;
        sd_event_source_disable_unref(generation->ready);
        sd_event_source_disable_unref(generation->timer);
        if (generation->daemon)
                MHD_stop_daemon(generation->daemon); /* closes its copy of the listening socket */
        free(generation->client_ca);
        free(generation);
}

static bool is_newest(const struct generation *generation) {
        const struct guard_server *server = generation->server;

        return server->generations.items[server->generations.count - 1] == generation;
}

/* Frees a former generation after its last connection. */
static bool retire(struct generation *generation) {
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(generation->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        struct guard_server *server = generation->server;

        if (is_newest(generation) || info->num_connections > 0)
                return false;
        for (size_t i = 0; i + 1 < server->generations.count; i++)
                if (server->generations.items[i] == generation) {
                        memmove(&server->generations.items[i], &server->generations.items[i + 1],
                                (server->generations.count - i - 1) * sizeof(struct generation *));
                        server->generations.count--;
                        break;
                }
        generation_free(generation);
        return true;
}

/* An earlier timer is left alone: it fires too early and is set again, which is cheaper than moving
 * it with every request. */
static void arm(struct generation *generation, uint64_t wait_us) {
        uint64_t due_us = nd_clock_us() + wait_us;

        if (generation->due_us <= due_us)
                return;
        generation->due_us = due_us;
        (void) sd_event_source_set_time_relative(generation->timer, wait_us);
        (void) sd_event_source_set_enabled(generation->timer, SD_EVENT_ONESHOT);
}

/* Returns false if the generation has ended and was freed. */
static bool run(struct generation *generation) {
        int64_t wait_ms = 0;

        for (int turn = 0; wait_ms == 0 && turn < TURNS; turn++) {
                (void) MHD_run(generation->daemon);
                if (retire(generation))
                        return false;
                wait_ms = MHD_get_timeout64s(generation->daemon);
        }
        if (wait_ms >= 0)
                arm(generation, (uint64_t) wait_ms * ND_MS_US);
        return true;
}

static int on_ready([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        (void) run(userdata);
        return 0;
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct generation *generation = userdata;

        generation->due_us = UINT64_MAX;
        (void) run(generation);
        return 0;
}

void guard_server_free(struct guard_server *server) {
        if (!server)
                return;
        /* libmicrohttpd requires that every connection is resumed before it stops */
        while (server->waiting.count > 0)
                guard_exchange_respond(server->waiting.items[server->waiting.count - 1], MHD_HTTP_SERVICE_UNAVAILABLE,
                                       "text/plain", "stopping\n", 9);
        nd_vector_each (generation, &server->generations) {
                (void) MHD_run((*generation)->daemon);
                generation_free(*generation);
        }
        nd_vector_done(&server->generations);
        nd_vector_done(&server->waiting);
        sd_event_source_disable_unref(server->sweeper);
        nd_vector_done(&server->clients);
        guard_clients_free(server->addresses);
        guard_client_auth_free(server->auth);
        nd_close_fd(&server->fd);
        sd_event_unref(server->loop);
        free(server);
}

static struct nd_error *listen_error(const char *address, const char *port, int reason) {
        if (reason == EADDRINUSE)
                return nd_error_new(ND_UNAVAILABLE, reason,
                                    "listen on %s port %s (`ss -ltnp 'sport = :%s'` shows which process has it; `port` in the "
                                    "configuration sets another)",
                                    address, port, port);
        if (reason == EADDRNOTAVAIL)
                return nd_error_new(
                        ND_UNAVAILABLE, reason,
                        "listen on %s port %s (`address` in the configuration must be one of this host, or 0.0.0.0)", address,
                        port);
        if (reason == EACCES || reason == EPERM)
                return nd_error_new(ND_UNAVAILABLE, reason,
                                    "listen on %s port %s (the unit allows port 9443 only: add SocketBindAllow= in a drop-in)",
                                    address, port);
        return nd_error_new(ND_UNAVAILABLE, reason, "listen on %s port %s", address, port);
}

static struct nd_error *listen_at(struct guard_server *server) {
        struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_PASSIVE},
                        *found;
        char port[8];
        int on = 1, r;

        (void) snprintf(port, sizeof port, "%u", server->settings.port);
        r = getaddrinfo(server->settings.address, port, &hints, &found);
        if (r != 0)
                return nd_error_new(ND_INVALID, 0, "listen: invalid address '%s': %s", server->settings.address,
                                    gai_strerror(r));
        server->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->fd >= 0)
                (void) setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        r = server->fd < 0 || bind(server->fd, found->ai_addr, found->ai_addrlen) < 0 || listen(server->fd, BACKLOG) < 0
                    ? errno
                    : 0;
        freeaddrinfo(found);
        if (r != 0)
                return listen_error(server->settings.address, port, r);
        return nullptr;
}

/* Messages of libmicrohttpd about its clients. Any client can cause them, so they are logged at
 * debug level only. */
[[gnu::format(printf, 2, 0)]] static void log_libmicrohttpd([[maybe_unused]] void *userdata, const char *format,
                                                            va_list arguments) {
        nd_autofree char *words = nd_format_va(format, arguments);

        words[strcspn(words, "\n")] = '\0';
        nd_log(ND_LOG_DEBUG, "libmicrohttpd", nd_field("words", words));
}

static struct MHD_Daemon *start_daemon(struct generation *generation, int fd, const char *certificate, const char *key) {
        struct MHD_OptionItem trust[] = {{.option = generation->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END,
                                          .ptr_value = generation->client_ca},
                                         {.option = MHD_OPTION_END}};

        return MHD_start_daemon(
                MHD_USE_EPOLL | MHD_USE_TLS | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, may_connect, generation,
                accept_part, generation, MHD_OPTION_EXTERNAL_LOGGER, log_libmicrohttpd, nullptr, MHD_OPTION_LISTEN_SOCKET, fd,
                MHD_OPTION_HTTPS_MEM_CERT, certificate, MHD_OPTION_HTTPS_MEM_KEY, key, MHD_OPTION_NOTIFY_COMPLETED, finished,
                generation, MHD_OPTION_NOTIFY_CONNECTION, on_connection, generation, MHD_OPTION_CONNECTION_TIMEOUT,
                (unsigned) IDLE_SECONDS, MHD_OPTION_CONNECTION_LIMIT, generation->server->settings.connections,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) (64 << 10), MHD_OPTION_ARRAY, trust, MHD_OPTION_END);
}

static void generation_done(struct generation **generation) {
        generation_free(*generation);
}

static struct nd_error *start(struct guard_server *server, const struct guard_server_files *files) {
        nd_cleanup(generation_done) struct generation *generation = nd_new(struct generation);
        int fd = fcntl(server->fd, F_DUPFD_CLOEXEC, 3), r;
        const union MHD_DaemonInfo *info;

        if (fd < 0)
                return nd_error_new(ND_INTERNAL, errno, "duplicate the listening socket");
        generation->server = server;
        generation->due_us = UINT64_MAX;
        generation->client_ca = server->auth ? nd_strdup(files->client_ca) : nullptr;
        generation->daemon = start_daemon(generation, fd, files->certificate, files->key);
        if (!generation->daemon) {
                /* libmicrohttpd closes it on some failures and not on others */
                if (fcntl(fd, F_GETFD) >= 0)
                        nd_close_fd(&fd);
                return nd_error_new(ND_INVALID, 0, "start HTTPS: check that the certificate and the key match");
        }
        info = MHD_get_daemon_info(generation->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        r = sd_event_add_io(server->loop, &generation->ready, info->epoll_fd, EPOLLIN, on_ready, generation);
        if (r >= 0)
                r = sd_event_add_time_relative(server->loop, &generation->timer, CLOCK_MONOTONIC, 0, 1, on_timer, generation);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "add the server to the event loop");
        nd_vector_push(&server->generations, nd_take_ptr(generation));
        return nullptr;
}

/* libmicrohttpd returns its copy of the socket. */
static void stop_accepting(struct generation *generation) {
        int fd = MHD_quiesce_daemon(generation->daemon);

        if (fd >= 0)
                nd_close_fd(&fd);
        arm(generation, 0);
}

struct nd_error *guard_server_renew(struct guard_server *server, const struct guard_server_files *files) {
        struct generation *former = server->generations.items[server->generations.count - 1];

        if (server->fd < 0)
                return nullptr; /* it ends */
        if (server->auth)       /* also for connections that are open */
                nd_try(guard_client_auth_renew(server->auth, files->client_ca));
        nd_try(start(server, files));
        stop_accepting(former);
        return nullptr;
}

/* ---- end ---- */

void guard_server_announce_end(struct guard_server *server) {
        server->ends = true;
}

size_t guard_server_connections(const struct guard_server *server) {
        return server->clients.count;
}

/* Connections that the kernel has accepted already are served. */
static void close_listener(struct guard_server *server) {
        struct generation *newest = server->generations.items[server->generations.count - 1];

        if (run(newest))
                stop_accepting(newest);
        nd_close_fd(&server->fd);
}

static bool is_idle(const struct client *client, int fd, uint64_t now_us) {
        int unread = 0;

        if (client->in_request || (!client->used && now_us - client->opened_us < first_request_us))
                return false;
        return ioctl(fd, FIONREAD, &unread) < 0 || unread == 0;
}

void guard_server_close_idle(struct guard_server *server) {
        uint64_t now_us = nd_clock_us();

        server->ends = true;
        if (server->fd >= 0)
                close_listener(server);
        nd_vector_each (client, &server->clients) {
                const union MHD_ConnectionInfo *info =
                        MHD_get_connection_info((*client)->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

                if (is_idle(*client, info->connect_fd, now_us))
                        /* libmicrohttpd sees the end of the connection, and ends TLS on it */
                        (void) shutdown(info->connect_fd, SHUT_RD);
        }
}

static void server_done(struct guard_server **server) {
        guard_server_free(*server);
}

struct nd_error *guard_server_new(sd_event *loop, const struct guard_server_settings *settings, struct guard_server **ret) {
        nd_cleanup(server_done) struct guard_server *server = nd_new(struct guard_server);
        int r;

        server->fd = -EBADF;
        server->loop = sd_event_ref(loop);
        server->settings = *settings;
        server->settings.files = (struct guard_server_files) {}; /* owned by the caller */
        server->addresses = guard_clients_new(settings->connections, settings->files.client_ca);
        if (settings->files.client_ca)
                nd_try(guard_client_auth_new(settings->files.client_ca, settings->reviewers, settings->readers,
                                             &server->auth));
        r = sd_event_add_time_relative(loop, &server->sweeper, CLOCK_MONOTONIC, sweep_interval_us, ND_SECOND_US, on_sweep,
                                       server);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "start the timer for unauthenticated connections");
        nd_try(listen_at(server));
        nd_try(start(server, &settings->files));
        *ret = nd_take_ptr(server);
        return nullptr;
}

uint64_t guard_server_refused(const struct guard_server *server) {
        return server->refused;
}
