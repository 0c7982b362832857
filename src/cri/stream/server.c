/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h
 *
 * Theory of operation
 *   Every process on the node can connect, including pods on the host's network; only a token
 *   authorizes. So the number of clients without a token (UNAUTHORIZED) and their lifetime are
 *   limited, and a new one beyond the limit evicts one of them. The choice depends on their owners
 *   (eviction.h): no other user of the node and no pod can evict the kubelet's connection before
 *   its token was read, however fast it connects. Clients with a token are limited by CONNECTIONS;
 *   beyond that new connections are closed at once.
 * Owns       the listener, the tokens and the connections. */
#include "cri/stream/server.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/stream/attach.h"
#include "cri/stream/connection.h"
#include "cri/stream/eviction.h"
#include "cri/stream/exec.h"
#include "cri/stream/forward.h"

enum {
        UNAUTHORIZED = 64,
        CONNECTIONS = 1024,
        BACKLOG = 1024,
        /* per wakeup: a full backlog must not delay clients by one iteration of the loop each */
        ACCEPTED = 64,
};

struct client {
        struct cri_stream_connection *connection;
        struct cri_tcp_owner owner;
};

struct cri_stream_server {
        int fd;
        uint16_t port;
        sd_event_source *source;
        struct cri_stream_tokens tokens;
        struct cri_stream_connection_owner owner;
        nd_vector(struct client) clients; /* oldest first */
        int questions;                    /* netlink socket for the owners of clients */
};

static const struct cri_stream_session_type *const types[] = {
        [STREAM_EXEC] = &cri_stream_exec, [STREAM_ATTACH] = &cri_stream_attach, [STREAM_FORWARD] = &cri_stream_forward};
static_assert(nd_count_of(types) == STREAM_FORWARD + 1);

void cri_stream_server_free(struct cri_stream_server *server) {
        if (!server)
                return;
        nd_vector_each (client, &server->clients)
                cri_stream_connection_free(client->connection);
        nd_vector_done(&server->clients);
        nd_close_fd(&server->questions);
        sd_event_source_disable_unref(server->source);
        nd_close_fd(&server->fd);
        cri_stream_tokens_done(&server->tokens);
        free(server);
}

static void server_done(struct cri_stream_server **server) {
        cri_stream_server_free(*server);
}

static void on_ended(struct cri_stream_connection *connection, void *userdata) {
        struct cri_stream_server *server = userdata;

        for (size_t i = 0; i < server->clients.count; i++) {
                if (server->clients.items[i].connection != connection)
                        continue;
                server->clients.count--;
                memmove(server->clients.items + i, server->clients.items + i + 1,
                        (server->clients.count - i) * sizeof *server->clients.items);
                break;
        }
        cri_stream_connection_free(connection);
}

/* Accepts "/exec/TOKEN" only with a token for exec. */
static struct cri_stream_request *redeem(const char *path, const struct cri_stream_session_type **ret_type, void *userdata) {
        struct cri_stream_server *server = userdata;

        for (size_t i = 0; i < nd_count_of(types); i++) {
                struct cri_stream_request *request;

                if (!nd_has_prefix(path, types[i]->path))
                        continue;
                request = cri_stream_tokens_take(&server->tokens, path + strlen(types[i]->path), nd_clock_us());
                if (request && request->kind == i) {
                        *ret_type = types[i];
                        return request;
                }
                cri_stream_request_free(request);
        }
        return nullptr;
}

void cri_stream_server_leave(struct cri_stream_server *server, const char *sandbox) {
        for (size_t i = server ? server->clients.count : 0; i > 0; i--)
                if (cri_stream_connection_is_for(server->clients.items[i - 1].connection, sandbox))
                        on_ended(server->clients.items[i - 1].connection, server);
}

/* May drop the newest client. */
static void thin_out(struct cri_stream_server *server) {
        struct cri_stream_connection *unauthorized[UNAUTHORIZED + 1];
        struct cri_tcp_owner owners[UNAUTHORIZED + 1];
        size_t count = 0;

        for (size_t i = 0; i < server->clients.count && count < nd_count_of(unauthorized); i++) {
                if (!cri_stream_connection_is_new(server->clients.items[i].connection))
                        continue;
                unauthorized[count] = server->clients.items[i].connection;
                owners[count++] = server->clients.items[i].owner;
        }
        if (count > UNAUTHORIZED)
                on_ended(unauthorized[cri_stream_eviction_choose(owners, count)], server);
}

static void take_client(struct cri_stream_server *server, int fd) {
        struct client client = {.owner = cri_tcp_owner_of(server->questions, fd)};
        nd_autoerror struct nd_error *error = nullptr;

        if (server->clients.count >= CONNECTIONS) {
                nd_close_fd(&fd);
                return;
        }
        error = cri_stream_connection_new(&server->owner, fd, &client.connection);
        if (error)
                return;
        nd_vector_push(&server->clients, client);
        thin_out(server);
}

static int on_client([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        for (int i = 0; i < ACCEPTED; i++) {
                int client = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (client < 0)
                        break;
                take_client(userdata, client);
        }
        return 0;
}

static struct nd_error *listen_somewhere(struct cri_stream_server *server) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;

        server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->fd < 0 || bind(server->fd, (struct sockaddr *) &address, sizeof address) < 0 ||
            listen(server->fd, BACKLOG) < 0 || getsockname(server->fd, (struct sockaddr *) &address, &length) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen on 127.0.0.1 for streams");
        server->port = ntohs(address.sin_port);
        return nullptr;
}

struct nd_error *cri_stream_server_new(sd_event *loop, const struct cri_config *config, const struct cri_pod_table *pods,
                                       const struct cri_pins *pins, struct cri_stream_server **ret) {
        nd_cleanup(server_done) struct cri_stream_server *server = nd_new(struct cri_stream_server);
        int r;

        server->owner =
                (struct cri_stream_connection_owner) {.parts = {.loop = loop, .config = config, .pods = pods, .pins = pins},
                                                      .redeem = redeem,
                                                      .ended = on_ended,
                                                      .userdata = server};
        server->fd = server->questions = -EBADF;
        nd_try(listen_somewhere(server));
        server->questions = cri_tcp_owner_open();
        r = sd_event_add_io(loop, &server->source, server->fd, EPOLLIN, on_client, server);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "watch a listening socket");
        *ret = nd_take_ptr(server);
        return nullptr;
}

struct nd_error *cri_stream_server_offer(struct cri_stream_server *server, struct cri_stream_request *request, char **ret) {
        const char *path = types[request->kind]->path;
        char token[TOKEN_LENGTH + 1];

        nd_try(cri_stream_tokens_issue(&server->tokens, request, nd_clock_us(), token));
        *ret = nd_format("http://127.0.0.1:%u%s%s", server->port, path, token);
        return nullptr;
}
