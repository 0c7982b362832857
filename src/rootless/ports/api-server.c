/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/ports/api-server.h"

#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "net/unix.h"
#include "sys/calls.h"

enum {
        CONNECTIONS = 64,
        BACKLOG = 64,
};

static constexpr uint64_t request_timeout_us = 10 * ND_SECOND_US;

struct rootless_api_server {
        sd_event *loop;
        struct rootless_api_backend backend;
        int listener;
        sd_event_source *source;
        size_t connections;
};

/* One client connection. */
struct request {
        struct rootless_api_server *server;
        int fd;
        sd_event_source *source, *deadline;
        struct nd_text bytes;
        struct nd_text answer;
        size_t sent;
};

static void request_free(struct request *r) {
        sd_event_source_disable_unref(r->source);
        sd_event_source_disable_unref(r->deadline);
        nd_close_fd(&r->fd);
        nd_text_done(&r->bytes);
        nd_text_done(&r->answer);
        nd_assert(r->server->connections > 0);
        r->server->connections--;
        free(r);
}

static int on_timeout([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        request_free(userdata);
        return 0;
}

static void send_answer(struct request *r) {
        ssize_t n = send(r->fd, r->answer.bytes + r->sent, r->answer.length - r->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0)
                r->sent += (size_t) n;
        if (r->sent == r->answer.length || (n < 0 && errno != EAGAIN && errno != EINTR))
                request_free(r);
        else
                (void) sd_event_source_set_io_events(r->source, EPOLLOUT);
}

static int on_request([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct request *r = userdata;
        char piece[8192];
        ssize_t n;

        if (r->answer.length > 0) {
                send_answer(r);
                return 0;
        }
        n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n > 0)
                nd_text_append(&r->bytes, piece, (size_t) n);
        if (n <= 0 || r->bytes.overflow) {
                request_free(r);
                return 0;
        }
        if (rootless_api_respond(&r->server->backend, r->bytes.bytes, r->bytes.length, &r->answer))
                send_answer(r);
        return 0;
}

static int on_client([[maybe_unused]] sd_event_source *source, int listener, [[maybe_unused]] uint32_t events,
                     void *userdata) {
        struct rootless_api_server *s = userdata;
        nd_autoclose int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct request *r;

        if (fd < 0 || s->connections == CONNECTIONS)
                return 0;
        r = nd_new(struct request);
        *r = (struct request) {
                .server = s, .fd = nd_take_fd(fd), .bytes = ND_TEXT(API_REQUEST_BYTES), .answer = ND_TEXT(API_RESPONSE_BYTES)};
        s->connections++;
        if (sd_event_add_io(s->loop, &r->source, r->fd, EPOLLIN, on_request, r) < 0 ||
            sd_event_add_time_relative(s->loop, &r->deadline, CLOCK_MONOTONIC, request_timeout_us, 0, on_timeout, r) < 0)
                request_free(r);
        return 0;
}

static void server_done(struct rootless_api_server **s) {
        rootless_api_server_free(*s);
}

static struct nd_error *listen_for_clients(struct rootless_api_server *s, const struct rootless_node *node) {
        nd_autofree char *path = nd_format("%s/api/api.sock", node->path);
        struct sockaddr_un address;

        nd_try(nd_unix_address(path, &address));
        /* of a dead controller: we hold the lock */
        (void) nd_sys->unlinkat(node->fd, "api/api.sock", 0);
        s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s->listener < 0 || bind(s->listener, (struct sockaddr *) &address, sizeof address) < 0 ||
            listen(s->listener, BACKLOG) < 0 || sd_event_add_io(s->loop, &s->source, s->listener, EPOLLIN, on_client, s) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen at '%s'", path);
        return nullptr;
}

struct nd_error *rootless_api_server_new(sd_event *loop, const struct rootless_node *node,
                                         const struct rootless_api_backend *backend, struct rootless_api_server **ret) {
        nd_cleanup(server_done) struct rootless_api_server *s = nd_new(struct rootless_api_server);

        *s = (struct rootless_api_server) {.loop = loop, .backend = *backend, .listener = -EBADF};
        nd_try(listen_for_clients(s, node));
        *ret = nd_take_ptr(s);
        return nullptr;
}

void rootless_api_server_free(struct rootless_api_server *s) {
        if (!s)
                return;
        sd_event_source_disable_unref(s->source);
        nd_close_fd(&s->listener);
        free(s);
}
