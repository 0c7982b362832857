/* SPDX-License-Identifier: Apache-2.0 */
/* broker.c - see broker.h
 *
 * Theory of operation
 *   nodens-cri in the node connects to our socket for each pull and gives nodens-fetch the
 *   connection, which asks for one address at a time (net/broker.h). The host's addresses are read
 *   for each request, since they change. If destination.h allows the address, we connect to it and
 *   answer with one end of a pair of AF_UNIX streams; the other end and the TCP socket are a relay
 *   (relay.h). The TCP socket itself stays here: net/broker.h says why.
 *   Names are not resolved: a name that a hostile server resolves differently the second time is of
 *   no use. When the socket is connected, its own address must differ from the peer's, else it
 *   leads to this host by a route that is not an address of an interface.
 *   Clients, relays and new connections per second are limited; a request over a limit is answered
 *   with EAGAIN, and nodens-fetch uses the node's network.
 * Invariant  a client has at most one request: its socket is not read until the answer is sent. */
#include "rootless/broker/broker.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/broker.h"
#include "net/unix.h"
#include "rootless/broker/destination.h"
#include "rootless/broker/relay.h"
#include "rootless/core/node.h"
#include "rootless/forward/confine.h"
#include "rootless/forward/watchdog.h"
#include "sys/calls.h"
#include "sys/fd-passing.h"
#include "sys/file.h"
#include "sys/notify.h"

enum {
        CLIENTS = 32,
        RELAYS = 64,
        BURST = 64, /* connections at once */
        BACKLOG = 16,
        PORTS_BYTES = 256,
};

static constexpr uint64_t connect_timeout_us = 3 * ND_SECOND_US;
static constexpr uint64_t token_us = 50 * ND_MS_US; /* 20 connections per second */

struct broker;

struct client {
        struct client *next;
        struct broker *broker;
        int fd;
        sd_event_source *source;
        int connecting; /* TCP socket of the request; -EBADF = none */
        sd_event_source *connected, *timeout;
};

struct broker {
        sd_event *loop;
        const char *name;
        struct rootless_broker_ports ports;
        struct nd_netlink netlink;
        int listener;
        sd_event_source *accepting;
        struct client *clients;
        size_t client_count;
        struct rootless_broker_relays *relays;
        unsigned tokens;
        uint64_t tokens_since;
        struct rootless_watchdog watchdog;
        sd_event_source *feeding;
};

/* ---- limits ---- */

static bool take_token(struct broker *broker) {
        uint64_t now = nd_clock_us(), more = (now - broker->tokens_since) / token_us;

        if (more > 0) {
                broker->tokens = broker->tokens + more > BURST ? BURST : broker->tokens + (unsigned) more;
                broker->tokens_since = now;
        }
        if (broker->tokens == 0)
                return false;
        broker->tokens--;
        return true;
}

/* ---- clients ---- */

static void end_request(struct client *client) {
        client->connected = sd_event_source_disable_unref(client->connected);
        client->timeout = sd_event_source_disable_unref(client->timeout);
        nd_close_fd(&client->connecting);
}

static void client_free(struct client *client) {
        struct broker *broker = client->broker;

        for (struct client **link = &broker->clients; *link; link = &(*link)->next)
                if (*link == client) {
                        *link = client->next;
                        broker->client_count--;
                        break;
                }
        end_request(client);
        sd_event_source_disable_unref(client->source);
        nd_close_fd(&client->fd);
        free(client);
        if (broker->accepting)
                (void) sd_event_source_set_enabled(broker->accepting, SD_EVENT_ON);
}

/* Answers, and reads the next request. A client that does not read its answers is dropped. */
static void answer(struct client *client, int status, int descriptor) {
        struct nd_broker_reply reply = {.status = status};
        ssize_t n = nd_fd_passing_send(client->fd, &reply, sizeof reply, &descriptor, descriptor >= 0 ? 1 : 0, MSG_DONTWAIT);

        end_request(client);
        if (n != (ssize_t) sizeof reply)
                client_free(client);
        else
                (void) sd_event_source_set_enabled(client->source, SD_EVENT_ON);
}

/* ---- connecting ---- */

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
        if (a->ss_family != b->ss_family)
                return false;
        if (a->ss_family == AF_INET)
                return memcmp(&((const struct sockaddr_in *) a)->sin_addr, &((const struct sockaddr_in *) b)->sin_addr,
                              sizeof(struct in_addr)) == 0;
        return memcmp(&((const struct sockaddr_in6 *) a)->sin6_addr, &((const struct sockaddr_in6 *) b)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
}

static bool leads_here(int fd) {
        struct sockaddr_storage own = {}, peer = {};
        socklen_t own_length = sizeof own, peer_length = sizeof peer;

        return getsockname(fd, (struct sockaddr *) &own, &own_length) < 0 ||
               getpeername(fd, (struct sockaddr *) &peer, &peer_length) < 0 || same_address(&own, &peer);
}

/* Makes the relay of a connected socket and answers with its other end. */
static void give(struct client *client) {
        nd_autoclose int theirs = -EBADF;
        int pair[2], remote;

        /* the relay watches it from here on */
        client->connected = sd_event_source_disable_unref(client->connected);
        if (leads_here(client->connecting))
                return answer(client, EACCES, -EBADF);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return answer(client, EAGAIN, -EBADF);
        theirs = pair[1];
        remote = nd_take_fd(client->connecting);
        if (!rootless_broker_relay_add(client->broker->relays, remote, pair[0])) /* owns both */
                return answer(client, EAGAIN, -EBADF);
        answer(client, 0, theirs);
}

static int on_connected([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct client *client = userdata;
        socklen_t length = sizeof(int);
        int status = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &length) < 0)
                status = errno;
        if (status == 0)
                give(client);
        else
                answer(client, status, -EBADF);
        return 0;
}

static int on_timeout([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        answer(userdata, ETIMEDOUT, -EBADF);
        return 0;
}

static socklen_t socket_address(const struct nd_broker_request *request, struct sockaddr_storage *ret) {
        *ret = (struct sockaddr_storage) {};
        if (request->family == AF_INET) {
                struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(request->port)};

                memcpy(&v4.sin_addr, request->address, sizeof v4.sin_addr);
                memcpy(ret, &v4, sizeof v4);
                return sizeof v4;
        }
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(request->port)};

        memcpy(&v6.sin6_addr, request->address, sizeof v6.sin6_addr);
        memcpy(ret, &v6, sizeof v6);
        return sizeof v6;
}

/* Returns an errno, 0 while connecting. */
static int dial(struct client *client, const struct nd_broker_request *request) {
        struct broker *broker = client->broker;
        struct sockaddr_storage address;
        socklen_t length = socket_address(request, &address);

        client->connecting = socket(request->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (client->connecting < 0)
                return EAGAIN;
        if (connect(client->connecting, (struct sockaddr *) &address, length) < 0 && errno != EINPROGRESS)
                return errno == ETIMEDOUT || errno == EPROTO ? EHOSTUNREACH : errno;
        if (sd_event_add_io(broker->loop, &client->connected, client->connecting, EPOLLOUT, on_connected, client) < 0 ||
            sd_event_add_time_relative(broker->loop, &client->timeout, CLOCK_MONOTONIC, connect_timeout_us, 0, on_timeout,
                                       client) < 0)
                return EAGAIN;
        return 0;
}

/* Reads the host's addresses and judges the request. Returns an errno, 0 = allowed. */
static int judge(struct broker *broker, const struct nd_broker_request *request) {
        struct nd_netlink_link_addresses own = {};
        struct nd_netlink_address to = {.family = request->family};
        nd_autoerror struct nd_error *error = nullptr;
        char text[ND_ADDRESS_TEXT];
        const char *why;

        if (request->version != ND_BROKER_VERSION || request->reserved != 0 ||
            (request->family != AF_INET && request->family != AF_INET6))
                return EINVAL;
        memcpy(to.bytes, request->address, sizeof to.bytes);
        error = nd_netlink_addresses(&broker->netlink, &own);
        why = error ? "the host's addresses cannot be read"
                    : rootless_broker_refusal(&broker->ports, &own, &to, request->port);
        nd_vector_done(&own);
        if (why)
                nd_log(ND_LOG_INFO, "refused a connection of the node", nd_field("node", broker->name),
                       nd_field("address", nd_netlink_address_text(&to, text)), nd_field("reason", why));
        return why ? EACCES : 0;
}

static int on_request([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct client *client = userdata;
        struct nd_broker_request request = {};
        int none = -EBADF, status;
        ssize_t n = nd_fd_passing_receive(fd, &request, sizeof request, &none, 0, MSG_DONTWAIT);

        if (n == -EAGAIN)
                return 0;
        if (n != (ssize_t) sizeof request) {
                client_free(client);
                return 0;
        }
        (void) sd_event_source_set_enabled(client->source, SD_EVENT_OFF);
        status = take_token(client->broker) ? judge(client->broker, &request) : EAGAIN;
        if (status == 0)
                status = dial(client, &request);
        if (status != 0)
                answer(client, status, -EBADF);
        return 0;
}

static int on_client([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct broker *broker = userdata;
        nd_autoclose int accepted = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct client *client;

        if (accepted < 0)
                return 0;
        client = nd_calloc(1, sizeof *client);
        *client =
                (struct client) {.broker = broker, .fd = nd_take_fd(accepted), .connecting = -EBADF, .next = broker->clients};
        broker->clients = client;
        if (++broker->client_count >= CLIENTS)
                (void) sd_event_source_set_enabled(broker->accepting, SD_EVENT_OFF);
        if (sd_event_add_io(broker->loop, &client->source, client->fd, EPOLLIN, on_request, client) < 0)
                client_free(client);
        return 0;
}

/* ---- start and end ---- */

static int on_init_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                         void *userdata) {
        struct broker *broker = userdata;

        return sd_event_exit(broker->loop, 0);
}

static struct nd_error *listen_for_clients(struct broker *broker, const struct rootless_node *node) {
        nd_autofree char *path = nd_format("%s/" BROKER_SOCKET, node->path);
        struct sockaddr_un address;

        nd_try(nd_unix_address(path, &address));
        /* of a killed broker: we hold the lock */
        (void) nd_sys->unlinkat(node->fd, BROKER_SOCKET, 0);
        broker->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (broker->listener < 0 || bind(broker->listener, (struct sockaddr *) &address, sizeof address) < 0 ||
            listen(broker->listener, BACKLOG) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen at '%s'", path);
        return nullptr;
}

static struct nd_error *read_ports(const struct rootless_node *node, struct rootless_broker_ports *ret) {
        nd_autofree char *text = nullptr;
        size_t length;

        nd_try(nd_error_wrap(nd_file_read(node->fd, BROKER_PORTS_FILE, PORTS_BYTES, &text, &length),
                             "node '%s' was started without ports of registries", node->name));
        return rootless_broker_ports_parse(text, ret);
}

static int on_feeding(sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct broker *broker = userdata;
        int r;

        rootless_watchdog_feed(&broker->watchdog, nd_clock_us());
        r = sd_event_source_set_time_relative(source, broker->watchdog.every_us);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The service manager restarts a broker whose loop stands still. */
static int watch(struct broker *broker) {
        rootless_watchdog_open(&broker->watchdog);
        if (broker->watchdog.fd < 0)
                return 0;
        return sd_event_add_time_relative(broker->loop, &broker->feeding, CLOCK_MONOTONIC, 0, 0, on_feeding, broker);
}

static struct nd_error *prepare(struct broker *broker, const struct rootless_node *node, int pidfd) {
        int r;

        (void) signal(SIGPIPE, SIG_IGN);
        nd_try(read_ports(node, &broker->ports));
        nd_try(nd_netlink_open(&broker->netlink));
        nd_try(listen_for_clients(broker, node));
        r = sd_event_new(&broker->loop);
        if (r >= 0)
                r = sd_event_add_io(broker->loop, &broker->accepting, broker->listener, EPOLLIN, on_client, broker);
        if (r >= 0)
                r = sd_event_add_io(broker->loop, nullptr, pidfd, EPOLLIN, on_init_ended, broker);
        if (r >= 0)
                r = watch(broker);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(rootless_broker_relays_new(broker->loop, RELAYS, &broker->relays));
        broker->tokens = BURST;
        broker->tokens_since = nd_clock_us();
        nd_notify_ready("ready: connects pulls of the node to registries");
        return rootless_confine_broker();
}

static void broker_done(struct broker *broker) {
        broker->feeding = sd_event_source_disable_unref(broker->feeding);
        rootless_watchdog_done(&broker->watchdog);
        for (struct client *client = broker->clients, *next; client; client = next) {
                next = client->next;
                client_free(client);
        }
        rootless_broker_relays_free(broker->relays);
        broker->accepting = sd_event_source_disable_unref(broker->accepting);
        nd_close_fd(&broker->listener);
        nd_netlink_done(&broker->netlink);
        sd_event_unref(broker->loop);
}

struct nd_error *rootless_broker_run(const char *name) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_autoclose int lock = -EBADF, pidfd = -EBADF;
        nd_cleanup(broker_done) struct broker broker = {
                .name = name, .listener = -EBADF, .netlink = ND_NETLINK_NONE, .watchdog = WATCHDOG_NONE};
        int r;

        nd_try(rootless_node_open(name, false, &node));
        nd_try(rootless_node_lock_service(&node, "broker.lock", &lock));
        nd_try(rootless_node_open_init(&node, &record, &pidfd));
        nd_try(prepare(&broker, &node, pidfd));
        r = sd_event_loop(broker.loop);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "serve connections") : nullptr;
}
