/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h
 *
 * Theory of operation
 *   Every process on the node can connect, pods on the host's network among them; only a token makes a difference. So strangers are few (STRANGERS) and
 *   short-lived: where another one comes the oldest goes, and nobody can keep the kubelet out by holding places. Clients with a token are bounded, too,
 *   by CONNECTIONS: then new ones are closed at once.
 * Owns       the listener, the tokens and the connections. */
#include "cri/stream/server.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/daemon.h"
#include "cri/stream/attach.h"
#include "cri/stream/connection.h"
#include "cri/stream/exec.h"
#include "cri/stream/forward.h"

enum {
        STRANGERS = 64,
        CONNECTIONS = 1024,
        BACKLOG = 128,
};

struct stream_server {
        int fd;
        uint16_t port;
        sd_event_source *source;
        struct tokens tokens;
        struct connection_owner owner;
        nd_vector(struct connection *) connections; /* the oldest first */
};

static const struct session_type *const types[] = {
        [STREAM_EXEC] = &stream_exec, [STREAM_ATTACH] = &stream_attach, [STREAM_FORWARD] = &stream_forward};

void stream_server_free(struct stream_server *server) {
        if (!server)
                return;
        nd_vector_each (connection, &server->connections)
                connection_free(*connection);
        nd_vector_done(&server->connections);
        sd_event_source_disable_unref(server->source);
        nd_close_fd(&server->fd);
        tokens_done(&server->tokens);
        free(server);
}

static void server_done(struct stream_server **server) {
        stream_server_free(*server);
}

static void on_ended(struct connection *connection, void *userdata) {
        struct stream_server *server = userdata;

        for (size_t i = 0; i < server->connections.count; i++) {
                if (server->connections.items[i] != connection)
                        continue;
                server->connections.count--;
                memmove(server->connections.items + i, server->connections.items + i + 1,
                        (server->connections.count - i) * sizeof *server->connections.items);
                break;
        }
        connection_free(connection);
}

/* "/exec/TOKEN", and a token for exec. */
static struct stream_request *redeem(const char *path, const struct session_type **ret_type, void *userdata) {
        struct stream_server *server = userdata;

        for (size_t i = 0; i < nd_count_of(types); i++) {
                struct stream_request *request;

                if (!nd_has_prefix(path, types[i]->path))
                        continue;
                request = tokens_redeem(&server->tokens, path + strlen(types[i]->path), nd_clock_us());
                if (request && request->kind == i) {
                        *ret_type = types[i];
                        return request;
                }
                stream_request_free(request);
        }
        return nullptr;
}

void stream_server_leave(struct stream_server *server, const char *sandbox) {
        for (size_t i = server ? server->connections.count : 0; i > 0; i--)
                if (connection_is_for(server->connections.items[i - 1], sandbox))
                        on_ended(server->connections.items[i - 1], server);
}

static void make_room(struct stream_server *server) {
        struct connection *oldest = nullptr;
        size_t strangers = 0;

        nd_vector_each (connection, &server->connections) {
                if (!connection_is_new(*connection))
                        continue;
                strangers++;
                oldest = oldest ?: *connection;
        }
        if (strangers >= STRANGERS)
                on_ended(oldest, server);
}

static int on_client([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct stream_server *server = userdata;
        nd_autoerror struct nd_error *error = nullptr;
        struct connection *connection;
        nd_autoclose int client = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (client < 0)
                return 0;
        make_room(server);
        if (server->connections.count >= CONNECTIONS)
                return 0;
        error = connection_new(&server->owner, nd_take_fd(client), &connection);
        if (!error)
                nd_vector_push(&server->connections, connection);
        return 0;
}

static struct nd_error *listen_somewhere(struct stream_server *server) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;

        server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->fd < 0 || bind(server->fd, (struct sockaddr *) &address, sizeof address) < 0 ||
            listen(server->fd, BACKLOG) < 0 || getsockname(server->fd, (struct sockaddr *) &address, &length) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "listen on 127.0.0.1 for streams");
        server->port = ntohs(address.sin_port);
        return nullptr;
}

struct nd_error *stream_server_new(struct daemon *daemon, struct stream_server **ret) {
        nd_cleanup(server_done) struct stream_server *server = nd_new(struct stream_server);
        int r;

        server->owner = (struct connection_owner) {.daemon = daemon, .redeem = redeem, .ended = on_ended, .userdata = server};
        nd_try(listen_somewhere(server));
        r = sd_event_add_io(daemon->loop, &server->source, server->fd, EPOLLIN, on_client, server);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "watch a socket");
        *ret = nd_take_ptr(server);
        return nullptr;
}

struct nd_error *stream_server_offer(struct stream_server *server, struct stream_request *request, char **ret) {
        const char *path = types[request->kind]->path;
        char token[TOKEN_LENGTH + 1];

        nd_try(tokens_issue(&server->tokens, request, nd_clock_us(), token));
        *ret = nd_format("http://127.0.0.1:%u%s%s", server->port, path, token);
        return nullptr;
}
