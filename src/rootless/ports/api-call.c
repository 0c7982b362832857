/* SPDX-License-Identifier: Apache-2.0 */
/* api-call.c - see api-call.h
 *
 * One connection per call, as the server closes it after the reply. A controller that is not there
 * is an error at once: the caller tries again. */
#include "rootless/ports/api-call.h"

#include <sys/socket.h>

#include "base/clock.h"
#include "net/unix.h"
#include "rootless/ports/api-client.h"
#include "rootless/ports/api.h"

static constexpr uint64_t call_timeout_us = 15 * ND_SECOND_US;

struct rootless_api_call {
        const struct rootless_node *node;
        int fd;
        sd_event_source *source, *timer;
        struct nd_text request, reply;
        size_t sent;
        struct nd_error *failure; /* before the first event */
        void (*done)(const struct nd_error *error, yyjson_val *reply, void *userdata);
        void *userdata;
};

void rootless_api_call_cancel(struct rootless_api_call *call) {
        if (!call)
                return;
        sd_event_source_disable_unref(call->source);
        sd_event_source_disable_unref(call->timer);
        nd_close_fd(&call->fd);
        nd_text_done(&call->request);
        nd_text_done(&call->reply);
        nd_error_free(call->failure);
        free(call);
}

/* Ends the call: done() may start the next one. */
static void finish(struct rootless_api_call *call, struct nd_error *error) {
        nd_autoerror struct nd_error *owned = error;
        nd_autojson yyjson_doc *doc = nullptr;

        if (!owned)
                owned = rootless_api_parse(call->node->name, nd_text_get(&call->reply), &doc);
        sd_event_source_disable_unref(nd_take_ptr(call->source));
        sd_event_source_disable_unref(nd_take_ptr(call->timer));
        call->done(owned, doc ? yyjson_doc_get_root(doc) : nullptr, call->userdata);
        rootless_api_call_cancel(call);
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct rootless_api_call *call = userdata;
        struct nd_error *failure = nd_take_ptr(call->failure);

        finish(call,
               failure ? failure
                       : nd_error_new(ND_DEADLINE, ETIMEDOUT, "wait for the port controller of node '%s'", call->node->name));
        return 0;
}

static bool is_later(ssize_t n) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void send_more(struct rootless_api_call *call) {
        ssize_t n = send(call->fd, call->request.bytes + call->sent, call->request.length - call->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && !is_later(n)) {
                finish(call, nd_error_new(ND_UNAVAILABLE, errno, "send a request to the port controller of node '%s'",
                                          call->node->name));
                return;
        }
        call->sent += n > 0 ? (size_t) n : 0;
        if (call->sent == call->request.length)
                (void) sd_event_source_set_io_events(call->source, EPOLLIN);
}

static void receive_more(struct rootless_api_call *call) {
        char piece[16 * 1024];
        ssize_t n = recv(call->fd, piece, sizeof piece, MSG_DONTWAIT);

        if (is_later(n))
                return;
        if (n > 0)
                nd_text_append(&call->reply, piece, (size_t) n);
        if (n > 0 && !call->reply.overflow)
                return;
        finish(call, n < 0 || call->reply.length == 0 || call->reply.overflow
                             ? nd_error_new(ND_UNAVAILABLE, n < 0 ? errno : 0,
                                            "no reply from the port controller of node '%s'", call->node->name)
                             : nullptr);
}

static int on_io([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                 void *userdata) {
        struct rootless_api_call *call = userdata;

        if (call->sent < call->request.length)
                send_more(call);
        else
                receive_more(call);
        return 0;
}

static struct nd_error *connect_api(struct rootless_api_call *call, sd_event *loop) {
        nd_autofree char *path = nd_format("%s/api/api.sock", call->node->path);
        struct sockaddr_un address;

        nd_try(nd_unix_address(path, &address));
        call->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (call->fd < 0 || connect(call->fd, (struct sockaddr *) &address, sizeof address) < 0 ||
            sd_event_add_io(loop, &call->source, call->fd, EPOLLOUT, on_io, call) < 0)
                return nd_error_new(ND_UNAVAILABLE, errno, "connect to the port controller of node '%s' at '%s'",
                                    call->node->name, path);
        return nullptr;
}

struct rootless_api_call *rootless_api_call_start(
        sd_event *loop, const struct rootless_node *node, const char *method, const char *path, const char *body,
        void (*done)(const struct nd_error *error, yyjson_val *reply, void *userdata), void *userdata) {
        struct rootless_api_call *call = nd_new(struct rootless_api_call);

        *call = (struct rootless_api_call) {.node = node,
                                            .fd = -EBADF,
                                            .request = ND_TEXT(API_REQUEST_BYTES),
                                            .reply = ND_TEXT(API_RESPONSE_BYTES),
                                            .done = done,
                                            .userdata = userdata};
        rootless_api_format(&call->request, method, path, body);
        call->failure = connect_api(call, loop);
        if (sd_event_add_time_relative(loop, &call->timer, CLOCK_MONOTONIC, call->failure ? 0 : call_timeout_us, 0, on_timer,
                                       call) < 0)
                abort(); /* out of memory */
        return call;
}
