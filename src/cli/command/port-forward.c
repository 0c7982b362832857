/* SPDX-License-Identifier: Apache-2.0 */
/* port-forward.c - see port-forward.h
 *
 * Theory of operation
 *   A listener per port accepts local connections. For each of them nodens-cri is asked for a URL,
 *   asynchronously and over a connection of its own, so that forwarding goes on after a restart of
 *   the daemon; then a tunnel (core/tunnel.h) carries the data. A connection that fails is reported
 *   and affects no other. If the pod has been stopped or removed, the command ends.
 * Owns       listeners and connections. */
#include "cli/command/port-forward.h"

#include <arpa/inet.h>
#include <nodens.pb-c.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"
#include "cli/core/client.h"
#include "cli/core/forward-rule.h"
#include "cli/core/target.h"
#include "cli/core/tunnel.h"
#include "cli/output/sanitize.h"
#include "net/grpc-client.h"
#include "net/protobuf.h"

enum {
        CONNECTIONS_MOST = 128, /* at once; further ones wait in the kernel's queue */
        ADDRESS_TEXT = INET6_ADDRSTRLEN + 10,
};

static constexpr uint64_t url_timeout_us = 30 * ND_SECOND_US;

const struct nd_option cli_port_forward_options[] = {
        {.name = "address",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_port_forward_settings, address),
         .argument = "ADDRESS",
         .help = "local address to listen on (default 127.0.0.1)"},
        CLIENT_SOCKET_OPTION(cli_port_forward_settings),
        {},
};

struct listener {
        struct forwarder *forwarder;
        struct cli_forward_rule rule;
        int fd;
        sd_event_source *source;
};

struct connection {
        struct forwarder *forwarder;
        uint16_t port; /* of the pod */
        int fd;        /* until the tunnel has it */
        struct nd_grpc_client *client;
        sd_event_source *ready; /* the URL is known or cannot be had */
        char *url;
        struct nd_error *error;
        struct cli_tunnel *tunnel;
};

struct forwarder {
        const char *socket;
        char *pod, *sandbox;
        sd_event *loop;
        sd_event_source *interrupt, *terminate;
        nd_vector(struct listener *) listeners;
        nd_vector(struct connection *) connections;
        struct nd_error *error; /* why it ended */
};

static void connection_free(struct connection *connection) {
        nd_grpc_client_free(connection->client); /* ends the call, which uses @ready */
        sd_event_source_disable_unref(connection->ready);
        cli_tunnel_free(connection->tunnel);
        nd_close_fd(&connection->fd);
        nd_error_free(connection->error);
        free(connection->url);
        free(connection);
}

static void forwarder_done(struct forwarder *forwarder) {
        nd_vector_each (connection, &forwarder->connections)
                connection_free(*connection);
        nd_vector_done(&forwarder->connections);
        nd_vector_each (listener, &forwarder->listeners) {
                sd_event_source_disable_unref((*listener)->source);
                nd_close_fd(&(*listener)->fd);
                free(*listener);
        }
        nd_vector_done(&forwarder->listeners);
        sd_event_source_disable_unref(forwarder->interrupt);
        sd_event_source_disable_unref(forwarder->terminate);
        sd_event_unref(forwarder->loop);
        free(forwarder->pod);
        free(forwarder->sandbox);
        nd_error_free(forwarder->error);
}

static void watch_listeners(const struct forwarder *forwarder) {
        int enabled = forwarder->connections.count < CONNECTIONS_MOST ? SD_EVENT_ON : SD_EVENT_OFF;

        nd_vector_each (listener, &forwarder->listeners)
                (void) sd_event_source_set_enabled((*listener)->source, enabled);
}

/* ---- connections ---- */

/* The pod is gone: no connection can succeed any more. */
static bool is_final(const struct nd_error *error) {
        return nd_error_code(error) == ND_NOT_FOUND || nd_error_code(error) == ND_PRECONDITION;
}

/* Takes the error; nullptr is a normal end. Frees the connection. */
static void connection_end(struct connection *connection, struct nd_error *error) {
        struct forwarder *forwarder = connection->forwarder;
        nd_autoerror struct nd_error *owned = nd_error_wrap(error, "port %u", connection->port);

        for (size_t i = 0; i < forwarder->connections.count; i++)
                if (forwarder->connections.items[i] == connection)
                        forwarder->connections.items[i] = forwarder->connections.items[--forwarder->connections.count];
        connection_free(connection);
        watch_listeners(forwarder);
        if (!owned)
                return;
        if (is_final(owned) && !forwarder->error) {
                forwarder->error = nd_take_ptr(owned);
                (void) sd_event_exit(forwarder->loop, 0);
        } else {
                (void) cli_sanitize_print_error("port-forward", owned);
        }
}

static void on_tunnel_end(struct nd_error *error, void *userdata) {
        connection_end(userdata, error);
}

static void on_answer(const char *bytes, size_t length, void *userdata) {
        struct connection *connection = userdata;
        ProtobufCMessage *answer = nullptr;

        if (connection->error)
                return;
        connection->error = nd_protobuf_unpack(&nodens__v1__forward_answer__descriptor, bytes, length, &answer);
        if (!connection->error)
                nd_strset(&connection->url, ((const Nodens__V1__ForwardAnswer *) answer)->url);
        nd_protobuf_free(answer);
}

/* The client cannot be freed within its own callback: on_ready() runs after it. */
static void on_answer_end(struct nd_error *error, void *userdata) {
        struct connection *connection = userdata;

        if (connection->error)
                nd_error_free(error);
        else
                connection->error = cli_client_explain(error);
        (void) sd_event_source_set_enabled(connection->ready, SD_EVENT_ONESHOT);
}

static int on_ready([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct connection *connection = userdata;
        struct nd_error *error = nd_take_ptr(connection->error);

        nd_grpc_client_done(&connection->client);
        if (!error && !connection->url)
                error = nd_error_new(ND_INTERNAL, 0, "nodens-cri returned no URL");
        if (!error)
                error = cli_tunnel_new(connection->forwarder->loop, connection->url, nd_take_fd(connection->fd), on_tunnel_end,
                                       connection, &connection->tunnel);
        if (error)
                connection_end(connection, error);
        return 0;
}

static struct nd_error *ask_for_url(struct connection *connection) {
        static const struct nd_grpc_answer answer = {.message = on_answer, .end = on_answer_end};
        Nodens__V1__ForwardRequest request = NODENS__V1__FORWARD_REQUEST__INIT;
        const struct forwarder *forwarder = connection->forwarder;
        nd_autotext struct nd_text bytes = {};
        int32_t call;

        request.sandbox = forwarder->sandbox;
        request.port = connection->port;
        nd_protobuf_pack(&request.base, &bytes);
        if (sd_event_add_defer(forwarder->loop, &connection->ready, on_ready, connection) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch a connection");
        (void) sd_event_source_set_enabled(connection->ready, SD_EVENT_OFF);
        nd_try(cli_client_explain(
                nd_grpc_client_connect(forwarder->loop, cli_client_socket_path(forwarder->socket), &connection->client)));
        return nd_grpc_client_call(connection->client, "/nodens.v1.Node/Forward", nd_text_get(&bytes), bytes.length,
                                   url_timeout_us, &answer, connection, &call);
}

static int on_listener([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        const struct listener *listener = userdata;
        struct connection *connection;
        struct nd_error *error;
        int client = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (client < 0)
                return 0;
        connection = nd_new(struct connection);
        connection->forwarder = listener->forwarder;
        connection->port = listener->rule.remote;
        connection->fd = client;
        nd_vector_push(&listener->forwarder->connections, connection);
        watch_listeners(listener->forwarder);
        error = ask_for_url(connection);
        if (error)
                connection_end(connection, error);
        return 0;
}

/* ---- listeners ---- */

union address {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
};

static struct nd_error *parse_address(const char *text, union address *ret, socklen_t *ret_length) {
        *ret = (union address) {};
        if (inet_pton(AF_INET, text, &ret->four.sin_addr) == 1) {
                ret->four.sin_family = AF_INET;
                *ret_length = sizeof ret->four;
        } else if (inet_pton(AF_INET6, text, &ret->six.sin6_addr) == 1) {
                ret->six.sin6_family = AF_INET6;
                *ret_length = sizeof ret->six;
        } else {
                return nd_error_new(ND_INVALID, 0, "invalid --address '%s': must be an IPv4 or IPv6 address", text);
        }
        return nullptr;
}

static void set_port(union address *address, uint16_t port) {
        if (address->any.sa_family == AF_INET)
                address->four.sin_port = htons(port);
        else
                address->six.sin6_port = htons(port);
}

/* "127.0.0.1:8080" */
static void print_listener(const struct listener *listener, const char *pod) {
        union address address = {};
        socklen_t length = sizeof address;
        char text[INET6_ADDRSTRLEN] = "";

        (void) getsockname(listener->fd, &address.any, &length);
        if (address.any.sa_family == AF_INET)
                printf("forwarding %s:%u to port %u of %s\n", inet_ntop(AF_INET, &address.four.sin_addr, text, sizeof text),
                       ntohs(address.four.sin_port), listener->rule.remote, pod);
        else
                printf("forwarding [%s]:%u to port %u of %s\n", inet_ntop(AF_INET6, &address.six.sin6_addr, text, sizeof text),
                       ntohs(address.six.sin6_port), listener->rule.remote, pod);
}

static struct nd_error *listen_on(struct forwarder *forwarder, const char *text, const struct cli_forward_rule *rule) {
        struct listener *listener = nd_new(struct listener);
        union address address;
        socklen_t length;

        *listener = (struct listener) {.forwarder = forwarder, .rule = *rule, .fd = -EBADF};
        nd_vector_push(&forwarder->listeners, listener);
        nd_try(parse_address(text, &address, &length));
        set_port(&address, rule->local);
        listener->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (listener->fd >= 0)
                (void) setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &(int) {1}, sizeof(int));
        if (listener->fd < 0 || bind(listener->fd, &address.any, length) < 0 || listen(listener->fd, SOMAXCONN) < 0)
                return nd_error_new(ND_UNAVAILABLE, errno, "listen on %s, port %u%s", text, rule->local,
                                    errno == EADDRINUSE
                                            ? " ('ss -lptn' shows the process that uses it; ':REMOTE' chooses a free one)"
                                            : "");
        if (sd_event_add_io(forwarder->loop, &listener->source, listener->fd, EPOLLIN, on_listener, listener) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch a listener");
        return nullptr;
}

/* ---- the command ---- */

static int on_signal([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *info,
                     void *userdata) {
        return sd_event_exit(((struct forwarder *) userdata)->loop, 0);
}

static struct nd_error *open_loop(struct forwarder *forwarder) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &set, nullptr);
        if (sd_event_new(&forwarder->loop) < 0 ||
            sd_event_add_signal(forwarder->loop, &forwarder->interrupt, SIGINT, on_signal, forwarder) < 0 ||
            sd_event_add_signal(forwarder->loop, &forwarder->terminate, SIGTERM, on_signal, forwarder) < 0)
                return nd_error_new(ND_INTERNAL, 0, "create an event loop");
        return nullptr;
}

/* Finds the pod; it must be ready. */
static struct nd_error *find_pod(struct forwarder *forwarder, const char *name) {
        struct cli_target_pods pods = {};
        ProtobufCMessage *answer = nullptr;
        struct nd_error *error;

        nd_try(cli_client_pods(forwarder->socket, &answer));
        error = cli_target_pod((const Nodens__V1__PodsAnswer *) answer, name, TARGET_NAMES_PREFIX, &pods);
        if (!error) {
                forwarder->pod = cli_target_pod_name(pods.items[0]);
                forwarder->sandbox = nd_strdup(pods.items[0]->id);
                if (!nd_streq(pods.items[0]->state, "ready"))
                        error = nd_error_new(ND_PRECONDITION, 0, "pod %s is not ready: it has been stopped", forwarder->pod);
        }
        nd_vector_done(&pods);
        nd_protobuf_free(answer);
        return error;
}

static struct nd_error *forward(const struct cli_port_forward_settings *settings, int count, char **operands) {
        nd_cleanup(forwarder_done) struct forwarder forwarder = {.socket = settings->socket};
        struct cli_forward_rule rule;
        int r;

        nd_try(find_pod(&forwarder, operands[0]));
        nd_try(open_loop(&forwarder));
        for (int i = 1; i < count; i++) {
                nd_try(cli_forward_rule_parse(operands[i], &rule));
                nd_try(listen_on(&forwarder, settings->address ?: "127.0.0.1", &rule));
        }
        nd_vector_each (listener, &forwarder.listeners)
                print_listener(*listener, forwarder.pod);
        (void) fflush(stdout);
        r = sd_event_loop(forwarder.loop);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "wait for connections");
        return nd_take_ptr(forwarder.error);
}

/* Checks the command line before nodens-cri is asked. */
static struct nd_error *check_usage(const struct cli_port_forward_settings *settings, int count, char **operands) {
        struct cli_forward_rule rule;
        union address address;
        socklen_t length;

        if (count < 2)
                return nd_error_new(ND_INVALID, 0, "missing pod or port, as in 'nodens port-forward default/web 8080:80'");
        for (int i = 1; i < count; i++)
                nd_try(cli_forward_rule_parse(operands[i], &rule));
        return settings->address ? parse_address(settings->address, &address, &length) : nullptr;
}

int cli_port_forward_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_port_forward_settings *settings = settings_pointer;
        nd_autoerror struct nd_error *error = check_usage(settings, operand_count, operands);

        if (error) {
                (void) cli_sanitize_print_error("port-forward", error);
                return ND_EXIT_USAGE;
        }
        error = forward(settings, operand_count, operands);
        return error ? cli_sanitize_print_error("port-forward", error) : 0;
}
