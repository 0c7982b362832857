/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - see connection.h
 *
 * Theory of operation
 *   @HEAD reads the request head, with a timeout, and replies. A valid token creates a session, and
 *   all further bytes belong to the transport, SPDY or WebSocket (@OPEN). Nothing blocks: a busy
 *   session stops the reading, a client that does not read stops the session
 *   (cri_stream_connection_room()), and each uses only its own bounded buffers.
 *   When the session has ended (@ENDING) the queue is sent. Then our side is shut down and further
 *   input is discarded (@SHUT): close() with unread input would make the kernel send a reset, and
 *   the client would lose data that we have sent.
 * Owns       the socket, the timer, the session. The owner frees the connection when ended() is
 *            called: always from the loop, never from within a session's call. */
#include "cri/stream/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cri/stream/transport.h"
#include "net/http-head.h"
#include "net/websocket.h"

enum {
        ALIVE_S = 30, /* keepalive probes start after this many seconds */
        ALIVE_AGAIN_S = 15,
        ALIVE_TRIES = 4,
        INPUT = ND_HTTP_HEAD,
};

static constexpr uint64_t head_timeout_us = 10 * ND_SECOND_US;
static constexpr uint64_t shut_timeout_us = 10 * ND_SECOND_US;
static constexpr uint64_t idle_timeout_us = 4 * 3600 * ND_SECOND_US; /* the kubelet's default */

enum phase {
        HEAD,
        OPEN,
        ENDING,
        SHUT,
};

struct cri_stream_connection {
        const struct cri_stream_connection_owner *owner;
        int fd;
        enum phase phase;
        bool paused;  /* the session is busy */
        bool working; /* a session callback is running: do not call it again */
        sd_event_source *source, *timer;
        uint64_t active_us;
        struct nd_text answer; /* to the request head */
        size_t answered;
        struct cri_transport *transport; /* nullptr before the upgrade */
        const struct cri_stream_session_type *type;
        void *session;
        char *subject;        /* ID of the container or sandbox; nullptr before the upgrade */
        size_t first, length; /* of the data in input */
        char input[INPUT];
};

void cri_stream_connection_free(struct cri_stream_connection *connection) {
        if (!connection)
                return;
        if (connection->session)
                connection->type->gone(nd_take_ptr(connection->session));
        sd_event_source_disable_unref(connection->source);
        sd_event_source_disable_unref(connection->timer);
        cri_transport_free(connection->transport);
        nd_text_done(&connection->answer);
        free(connection->subject);
        nd_close_fd(&connection->fd);
        free(connection);
}

bool cri_stream_connection_is_new(const struct cri_stream_connection *connection) {
        return connection->phase == HEAD;
}

bool cri_stream_connection_is_for(const struct cri_stream_connection *connection, const char *id) {
        return connection->subject && nd_streq(connection->subject, id);
}

const struct cri_stream_parts *cri_stream_connection_parts(const struct cri_stream_connection *connection) {
        return &connection->owner->parts;
}

/* ---- streams ---- */

void cri_stream_connection_accept(struct cri_stream_connection *connection, uint32_t stream) {
        cri_transport_accept(connection->transport, stream);
}

void cri_stream_connection_refuse(struct cri_stream_connection *connection, uint32_t stream) {
        cri_transport_refuse(connection->transport, stream);
}

void cri_stream_connection_attach(struct cri_stream_connection *connection, uint32_t stream, void *attachment) {
        cri_transport_attach(connection->transport, stream, attachment);
}

size_t cri_stream_connection_room(const struct cri_stream_connection *connection) {
        return cri_transport_room(connection->transport);
}

void cri_stream_connection_write(struct cri_stream_connection *connection, uint32_t stream, const char *bytes, size_t length) {
        cri_transport_write(connection->transport, stream, bytes, length);
}

void cri_stream_connection_end_stream(struct cri_stream_connection *connection, uint32_t stream) {
        cri_transport_end_stream(connection->transport, stream);
}

static void end(struct cri_stream_connection *connection) {
        connection->owner->ended(connection, connection->owner->userdata);
}

static void set_timer(struct cri_stream_connection *connection, uint64_t us) {
        (void) sd_event_source_set_time_relative(connection->timer, us);
        (void) sd_event_source_set_enabled(connection->timer, SD_EVENT_ONESHOT);
}

/* ---- output ---- */

/* False if the socket accepts no more now. */
static bool send_some(struct cri_stream_connection *connection, const char *bytes, size_t length, size_t *ret_sent) {
        ssize_t n;

        while ((n = send(connection->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR)
                ;
        *ret_sent = n > 0 ? (size_t) n : 0;
        if (n > 0)
                connection->active_us = nd_clock_us();
        return n > 0;
}

/* Sends as much as the socket accepts; true if a session can write again. The event source reports
 * a disconnected peer. */
static bool send_all(struct cri_stream_connection *connection) {
        const char *bytes;
        bool room = false;
        size_t n;

        while (connection->answered < connection->answer.length) {
                if (!send_some(connection, connection->answer.bytes + connection->answered,
                               connection->answer.length - connection->answered, &n))
                        return false;
                connection->answered += n;
        }
        while (connection->transport && (n = cri_transport_queued(connection->transport, &bytes)) > 0) {
                if (!send_some(connection, bytes, n, &n))
                        break;
                room = cri_transport_sent(connection->transport, n) || room;
        }
        return room;
}

static bool has_output(const struct cri_stream_connection *connection) {
        const char *bytes;

        return connection->answered < connection->answer.length ||
               (connection->transport && cri_transport_queued(connection->transport, &bytes) > 0);
}

static void update_events(struct cri_stream_connection *connection) {
        uint32_t events = EPOLLRDHUP;

        if (!connection->paused)
                events |= EPOLLIN;
        if (has_output(connection))
                events |= EPOLLOUT;
        if (connection->phase == SHUT)
                events = EPOLLIN;
        (void) sd_event_source_set_io_events(connection->source, events);
}

/* Everything is sent: shut down our side. */
static void shut(struct cri_stream_connection *connection) {
        if (connection->phase != ENDING || has_output(connection))
                return;
        (void) shutdown(connection->fd, SHUT_WR);
        connection->phase = SHUT;
        set_timer(connection, shut_timeout_us);
}

void cri_stream_connection_flush(struct cri_stream_connection *connection) {
        bool room = send_all(connection);

        shut(connection);
        update_events(connection);
        if (room && connection->session)
                connection->type->room(connection->session);
}

void cri_stream_connection_finish(struct cri_stream_connection *connection) {
        connection->session = nullptr;
        connection->phase = ENDING;
        connection->paused = false;
        cri_transport_goodbye(connection->transport);
        cri_stream_connection_flush(connection);
}

/* ---- request head ---- */

static void answer(struct cri_stream_connection *connection, unsigned status, const struct nd_http_field *fields,
                   const char *words) {
        connection->answer = ND_TEXT(ND_HTTP_ANSWER);
        nd_http_answer(&connection->answer, status, fields, words);
        if (status == 101)
                return;
        connection->phase = ENDING;
        set_timer(connection, head_timeout_us);
}

/* The client's first protocol that is in our list. */
static const char *choose(const struct nd_http_head *head, const char *name, const char *const *list, bool *ret_any) {
        struct nd_http_items items = {.name = name};

        *ret_any = false;
        while (nd_http_head_next(head, &items)) {
                *ret_any = true;
                for (const char *const *known = list; *known; known++)
                        if (strlen(*known) == items.length && memcmp(*known, items.item, items.length) == 0)
                                return *known;
        }
        return nullptr;
}

static void refuse_protocol(struct cri_stream_connection *connection, const char *const *list, bool any) {
        nd_autotext struct nd_text text = ND_TEXT(512);
        struct nd_http_field fields[] = {{"X-Accepted-Stream-Protocol-Versions", nullptr}, {}};

        for (const char *const *known = list; *known; known++)
                nd_text_addf(&text, "%s%s", text.length > 0 ? ", " : "", *known);
        fields[0].value = nd_text_get(&text);
        if (any)
                answer(connection, 403, fields, "none of the client's stream protocols is supported");
        else
                answer(connection, 400, nullptr, "the request has no X-Stream-Protocol-Version");
}

/* Enters @OPEN after the upgrade. Takes the request. */
static void open_session(struct cri_stream_connection *connection, const struct cri_stream_session_type *type,
                         struct cri_stream_request *request, const char *protocol) {
        connection->phase = OPEN;
        set_timer(connection, idle_timeout_us);
        connection->type = type;
        connection->subject = nd_strdup(request->container);
        connection->session = type->begin(connection, request, protocol);
}

static void upgrade_to_spdy(struct cri_stream_connection *connection, const struct nd_http_head *head,
                            const struct cri_stream_session_type *type, struct cri_stream_request *request) {
        struct nd_http_field fields[] = {
                {"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", nullptr}, {}};
        nd_autoerror struct nd_error *error = nullptr;
        bool any;
        const char *protocol = choose(head, "X-Stream-Protocol-Version", type->protocols, &any);

        if (!protocol) {
                cri_stream_request_free(request);
                refuse_protocol(connection, type->protocols, any);
                return;
        }
        error = cri_transport_new_spdy(type, &connection->transport);
        if (error) {
                cri_stream_request_free(request);
                answer(connection, nd_http_status(error), nullptr, nd_error_text(error));
                return;
        }
        fields[2].value = protocol;
        answer(connection, 101, fields, nullptr);
        open_session(connection, type, request, protocol);
}

/* A client that names no protocol gets the oldest. */
static void upgrade_to_websocket(struct cri_stream_connection *connection, const struct nd_http_head *head,
                                 const struct cri_stream_session_type *type, struct cri_stream_request *request) {
        const char *version = nd_http_head_get(head, "Sec-WebSocket-Version"),
                   *key = nd_http_head_get(head, "Sec-WebSocket-Key");
        char accept[ND_WEBSOCKET_ACCEPT];
        struct nd_http_field fields[] = {
                {"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Accept", accept}, {}, {}};
        bool any;
        const char *protocol = choose(head, "Sec-WebSocket-Protocol", type->channel_protocols, &any);

        if (!version || !nd_streq(version, "13") || !key || !nd_websocket_accept(key, accept)) {
                cri_stream_request_free(request);
                answer(connection, 400, nullptr, "invalid WebSocket handshake: version 13 is required");
                return;
        }
        if (!protocol && any) {
                cri_stream_request_free(request);
                refuse_protocol(connection, type->channel_protocols, true);
                return;
        }
        if (protocol)
                fields[3] = (struct nd_http_field) {"Sec-WebSocket-Protocol", protocol};
        connection->transport = cri_transport_new_websocket(request, protocol ?: "");
        answer(connection, 101, fields, nullptr);
        open_session(connection, type, request, protocol ?: "");
}

static void serve(struct cri_stream_connection *connection, const struct nd_http_head *head) {
        const struct cri_stream_session_type *type = nullptr;
        struct cri_stream_request *request;
        bool get = nd_streq(head->method, "GET");

        if (!get && !nd_streq(head->method, "POST")) {
                answer(connection, 405, nullptr, nullptr);
                return;
        }
        request = connection->owner->redeem(head->path, &type, connection->owner->userdata);
        if (!request) {
                answer(connection, 404, nullptr, nullptr);
        } else if (nd_http_head_lists(head, "Connection", "Upgrade") && nd_http_head_lists(head, "Upgrade", "SPDY/3.1")) {
                upgrade_to_spdy(connection, head, type, request);
        } else if (get && nd_http_head_lists(head, "Connection", "Upgrade") &&
                   nd_http_head_lists(head, "Upgrade", "websocket")) {
                upgrade_to_websocket(connection, head, type, request);
        } else {
                cri_stream_request_free(request);
                answer(connection, 400, nullptr, "request must upgrade to SPDY/3.1 or WebSocket");
        }
}

static void take_head(struct cri_stream_connection *connection) {
        nd_autohead struct nd_http_head head = {};
        nd_autoerror struct nd_error *error = nullptr;
        size_t used;

        error = nd_http_head_read(connection->input, connection->length, &head, &used);
        if (error) {
                answer(connection, nd_http_status(error), nullptr, nd_error_text(error));
                return;
        }
        if (used == 0 && connection->length < sizeof connection->input)
                return;
        if (used == 0) {
                answer(connection, 400, nullptr, "request header too long");
                return;
        }
        connection->first = used;
        serve(connection, &head);
}

/* ---- input ---- */

/* The client has closed the transport: so do we. */
static void part(struct cri_stream_connection *connection) {
        connection->type->gone(nd_take_ptr(connection->session));
        connection->phase = ENDING;
        set_timer(connection, shut_timeout_us);
}

/* Passes received data to the session until it is busy. False: protocol violation. */
static bool take_frames(struct cri_stream_connection *connection) {
        while (connection->phase == OPEN && !connection->paused) {
                nd_autoerror struct nd_error *error = nullptr;
                struct cri_stream_event event;
                size_t used = 0;
                bool any;

                error = cri_transport_receive(connection->transport, connection->input + connection->first,
                                              connection->length - connection->first, &used, &any, &event);
                if (error)
                        return false;
                connection->first += used;
                if (!any) {
                        if (cri_transport_is_over(connection->transport))
                                part(connection);
                        return true;
                }
                if (!connection->type->event(&event, connection->session))
                        connection->paused = true;
        }
        return true;
}

/* False if the connection must be closed. */
static bool take(struct cri_stream_connection *connection) {
        if (connection->phase == HEAD)
                take_head(connection);
        if (connection->phase == OPEN) {
                connection->working = true;
                if (!take_frames(connection))
                        return false;
                connection->working = false;
        }
        if (connection->phase != HEAD && connection->first == connection->length)
                connection->first = connection->length = 0;
        if (connection->phase >= ENDING)
                connection->first = connection->length = 0;
        return true;
}

static bool receive(struct cri_stream_connection *connection) {
        ssize_t n = recv(connection->fd, connection->input + connection->length, sizeof connection->input - connection->length,
                         MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        if (n == 0)
                return false;
        connection->active_us = nd_clock_us();
        connection->length += (size_t) n;
        return take(connection);
}

void cri_stream_connection_resume(struct cri_stream_connection *connection) {
        if (!connection->paused || connection->phase != OPEN)
                return;
        connection->paused = false;
        if (connection->working)
                return; /* take_frames() continues by itself */
        if (!take(connection)) {
                (void) shutdown(connection->fd, SHUT_RDWR); /* the event source reports it */
                return;
        }
        cri_stream_connection_flush(connection);
}

static int on_io([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct cri_stream_connection *connection = userdata;

        if ((events & (EPOLLHUP | EPOLLERR)) != 0 || ((events & EPOLLRDHUP) != 0 && connection->paused) ||
            ((events & EPOLLIN) != 0 && !receive(connection))) {
                end(connection);
                return 0;
        }
        cri_stream_connection_flush(connection);
        return 0;
}

static int on_time([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct cri_stream_connection *connection = userdata;
        uint64_t quiet_us = nd_clock_us() - connection->active_us;

        if (connection->transport && connection->phase == OPEN && quiet_us < idle_timeout_us)
                set_timer(connection, idle_timeout_us - quiet_us);
        else
                end(connection);
        return 0;
}

/* If a client dies while its send queue is full, its FIN is queued behind the data and we never see
 * it. Its kernel drops the connection after minutes; only keepalive probes detect that. */
static void set_options(int fd) {
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int) {1}, sizeof(int));
        (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int) {1}, sizeof(int));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int) {ALIVE_S}, sizeof(int));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int) {ALIVE_AGAIN_S}, sizeof(int));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int) {ALIVE_TRIES}, sizeof(int));
}

struct nd_error *cri_stream_connection_new(const struct cri_stream_connection_owner *owner, int fd,
                                           struct cri_stream_connection **ret) {
        struct cri_stream_connection *connection = nd_new(struct cri_stream_connection);
        sd_event *loop = owner->parts.loop;
        int r;

        connection->owner = owner;
        connection->fd = fd;
        connection->active_us = nd_clock_us();
        set_options(fd);
        r = sd_event_add_io(loop, &connection->source, fd, EPOLLIN | EPOLLRDHUP, on_io, connection);
        if (r >= 0)
                r = sd_event_add_time_relative(loop, &connection->timer, CLOCK_MONOTONIC, head_timeout_us, ND_SECOND_US,
                                               on_time, connection);
        if (r < 0) {
                cri_stream_connection_free(connection);
                return nd_error_new(ND_INTERNAL, -r, "watch the connection of a streaming client");
        }
        *ret = connection;
        return nullptr;
}
