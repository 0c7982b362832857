/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - see connection.h
 *
 * Theory of operation
 *   @HEAD reads the request's head, with a deadline, and answers it; a token that is worth something makes a session, and the bytes that follow are
 *   SPDY's (@OPEN). Nobody is waited for: a session that is busy stops the reading, a client that does not read stops the session (nd_spdy_room()), and
 *   each costs its own bounded buffers only. When the session has ended (@ENDING) the queue is sent; then our side is shut and what the client still
 *   says is thrown away (@SHUT): closing at once, with something unread, would make the kernel take back what we have sent.
 * Owns       the socket, the timer, the session. The owner frees it, when ended() says so: always from the loop, never from within a session's call. */
#include "cri/stream/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cri/daemon.h"
#include "net/http-head.h"
#include "net/spdy.h"

enum {
        HEAD_S = 10,
        SHUT_S = 10,
        IDLE_S = 4 * 3600, /* what kubelets have always granted */
        INPUT = ND_HTTP_HEAD,
};

enum phase {
        HEAD,
        OPEN,
        ENDING,
        SHUT,
};

struct connection {
        const struct connection_owner *owner;
        int fd;
        enum phase phase;
        bool paused;  /* the session is busy */
        bool working; /* the session is being called: it is not to be called again meanwhile */
        sd_event_source *source, *timer;
        uint64_t active_us;
        struct nd_text answer; /* to the head */
        size_t answered;
        struct nd_spdy *spdy; /* nullptr before the upgrade */
        const struct session_type *type;
        void *session;
        char *subject;        /* the container's id, or the sandbox's; nullptr before the upgrade */
        size_t first, length; /* of what is in input */
        char input[INPUT];
};

void connection_free(struct connection *connection) {
        if (!connection)
                return;
        if (connection->session)
                connection->type->gone(nd_take_ptr(connection->session));
        sd_event_source_disable_unref(connection->source);
        sd_event_source_disable_unref(connection->timer);
        nd_spdy_free(connection->spdy);
        nd_text_done(&connection->answer);
        free(connection->subject);
        nd_close_fd(&connection->fd);
        free(connection);
}

bool connection_is_new(const struct connection *connection) {
        return connection->phase == HEAD;
}

bool connection_is_for(const struct connection *connection, const char *id) {
        return connection->subject && nd_streq(connection->subject, id);
}

struct daemon *connection_daemon(const struct connection *connection) {
        return connection->owner->daemon;
}

/* ---- streams ---- */

void connection_accept(struct connection *connection, uint32_t stream) {
        nd_spdy_accept(connection->spdy, stream);
}

void connection_refuse(struct connection *connection, uint32_t stream) {
        nd_spdy_reset(connection->spdy, stream, ND_SPDY_REFUSED_STREAM);
}

void connection_attach(struct connection *connection, uint32_t stream, void *attachment) {
        nd_spdy_attach(connection->spdy, stream, attachment);
}

size_t connection_room(const struct connection *connection) {
        return nd_spdy_room(connection->spdy);
}

void connection_write(struct connection *connection, uint32_t stream, const char *bytes, size_t length) {
        (void) !nd_spdy_write(connection->spdy, stream, bytes, length);
}

void connection_end_stream(struct connection *connection, uint32_t stream) {
        nd_spdy_finish(connection->spdy, stream);
}

/* False where it is no session's business. */
static bool translate(const struct nd_spdy_event *event, struct stream_event *ret) {
        static const enum stream_event_kind kinds[] = {[ND_SPDY_OPENED] = STREAM_OPENED,
                                                       [ND_SPDY_DATA] = STREAM_DATA,
                                                       [ND_SPDY_FIN] = STREAM_FIN,
                                                       [ND_SPDY_RESET] = STREAM_RESET};

        if (event->kind < ND_SPDY_OPENED || event->kind > ND_SPDY_RESET)
                return false;
        *ret = (struct stream_event) {.kind = kinds[event->kind],
                                      .stream = event->stream,
                                      .attachment = event->attachment,
                                      .type = nd_spdy_event_header(event, "streamtype") ?: "",
                                      .port = nd_spdy_event_header(event, "port") ?: "",
                                      .identity = nd_spdy_event_header(event, "requestid") ?: "",
                                      .bytes = event->bytes,
                                      .length = event->length};
        return true;
}

static void end(struct connection *connection) {
        connection->owner->ended(connection, connection->owner->userdata);
}

static void set_timer(struct connection *connection, uint64_t seconds) {
        (void) sd_event_source_set_time_relative(connection->timer, seconds * ND_SECOND_US);
        (void) sd_event_source_set_enabled(connection->timer, SD_EVENT_ONESHOT);
}

/* ---- out ---- */

/* False when the socket takes no more now. */
static bool send_some(struct connection *connection, const char *bytes, size_t length, size_t *ret_sent) {
        ssize_t n;

        while ((n = send(connection->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR)
                ;
        *ret_sent = n > 0 ? (size_t) n : 0;
        if (n > 0)
                connection->active_us = nd_clock_us();
        return n > 0;
}

/* Sends what the socket takes; true when a session can write again. A peer that is gone is told by the source. */
static bool send_all(struct connection *connection) {
        const char *bytes;
        bool room = false;
        size_t n;

        while (connection->answered < connection->answer.length) {
                if (!send_some(connection, connection->answer.bytes + connection->answered,
                               connection->answer.length - connection->answered, &n))
                        return false;
                connection->answered += n;
        }
        while (connection->spdy && (n = nd_spdy_output(connection->spdy, &bytes)) > 0) {
                if (!send_some(connection, bytes, n, &n))
                        break;
                room = nd_spdy_sent(connection->spdy, n) || room;
        }
        return room;
}

static bool has_output(const struct connection *connection) {
        return connection->answered < connection->answer.length || (connection->spdy && nd_spdy_queued(connection->spdy) > 0);
}

static void update_events(struct connection *connection) {
        uint32_t events = EPOLLRDHUP;

        if (!connection->paused)
                events |= EPOLLIN;
        if (has_output(connection))
                events |= EPOLLOUT;
        if (connection->phase == SHUT)
                events = EPOLLIN;
        (void) sd_event_source_set_io_events(connection->source, events);
}

/* All is sent: our side is over. */
static void shut(struct connection *connection) {
        if (connection->phase != ENDING || has_output(connection))
                return;
        (void) shutdown(connection->fd, SHUT_WR);
        connection->phase = SHUT;
        set_timer(connection, SHUT_S);
}

void connection_flush(struct connection *connection) {
        bool room = send_all(connection);

        shut(connection);
        update_events(connection);
        if (room && connection->session)
                connection->type->room(connection->session);
}

void connection_finish(struct connection *connection) {
        connection->session = nullptr;
        connection->phase = ENDING;
        connection->paused = false;
        nd_spdy_goaway(connection->spdy, ND_SPDY_GOODBYE);
        connection_flush(connection);
}

/* ---- the head ---- */

static void answer(struct connection *connection, unsigned status, const struct nd_http_field *fields, const char *words) {
        connection->answer = ND_TEXT(ND_HTTP_ANSWER);
        nd_http_answer(&connection->answer, status, fields, words);
        if (status == 101)
                return;
        connection->phase = ENDING;
        set_timer(connection, HEAD_S);
}

/* The first of the client's that we have, too. */
static const char *choose(const struct nd_http_head *head, const struct session_type *type, bool *ret_any) {
        struct nd_http_items items = {.name = "X-Stream-Protocol-Version"};

        *ret_any = false;
        while (nd_http_head_next(head, &items)) {
                *ret_any = true;
                for (const char *const *known = type->protocols; *known; known++)
                        if (strlen(*known) == items.length && memcmp(*known, items.item, items.length) == 0)
                                return *known;
        }
        return nullptr;
}

static void refuse_protocol(struct connection *connection, const struct session_type *type, bool any) {
        nd_autotext list = ND_TEXT(512);
        struct nd_http_field fields[] = {{"X-Accepted-Stream-Protocol-Versions", nullptr}, {}};

        for (const char *const *known = type->protocols; *known; known++)
                nd_text_addf(&list, "%s%s", list.length > 0 ? ", " : "", *known);
        fields[0].value = nd_text_get(&list);
        if (any)
                answer(connection, 403, fields, "none of the client's stream protocols is known here");
        else
                answer(connection, 400, nullptr, "the request has no X-Stream-Protocol-Version");
}

static void upgrade(struct connection *connection, const struct session_type *type, struct stream_request *request,
                    const char *protocol) {
        const struct nd_http_field fields[] = {
                {"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", protocol}, {}};
        nd_autoerror struct nd_error *error =
                nd_spdy_new(&(struct nd_spdy_settings) {.streams = type->streams}, &connection->spdy);

        if (error) {
                stream_request_free(request);
                answer(connection, nd_http_status(error), nullptr, nd_error_text(error));
                return;
        }
        answer(connection, 101, fields, nullptr);
        connection->phase = OPEN;
        set_timer(connection, IDLE_S);
        connection->type = type;
        connection->subject = nd_strdup(request->container);
        connection->session = type->begin(connection, request, protocol);
}

static void serve(struct connection *connection, const struct nd_http_head *head) {
        const struct session_type *type = nullptr;
        struct stream_request *request;
        const char *protocol;
        bool any;

        if (strcmp(head->method, "GET") != 0 && strcmp(head->method, "POST") != 0) {
                answer(connection, 405, nullptr, nullptr);
                return;
        }
        request = connection->owner->redeem(head->path, &type, connection->owner->userdata);
        if (!request) {
                answer(connection, 404, nullptr, nullptr);
                return;
        }
        if (!nd_http_head_lists(head, "Connection", "Upgrade") || !nd_http_head_lists(head, "Upgrade", "SPDY/3.1")) {
                stream_request_free(request);
                answer(connection, 400, nullptr, "the request is no upgrade to SPDY/3.1");
                return;
        }
        protocol = choose(head, type, &any);
        if (!protocol) {
                stream_request_free(request);
                refuse_protocol(connection, type, any);
                return;
        }
        upgrade(connection, type, request, protocol);
}

static void take_head(struct connection *connection) {
        nd_autohead head = {};
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
                answer(connection, 400, nullptr, "the request's head is too long");
                return;
        }
        connection->first = used;
        serve(connection, &head);
}

/* ---- in ---- */

/* Gives the session what has come, until it is busy. False: the peer does not speak SPDY as it should. */
static bool take_frames(struct connection *connection) {
        while (connection->phase == OPEN && !connection->paused) {
                nd_autoerror struct nd_error *error = nullptr;
                struct nd_spdy_event event;
                struct stream_event translated;
                size_t used = 0;

                error = nd_spdy_receive(connection->spdy, connection->input + connection->first,
                                        connection->length - connection->first, &used, &event);
                if (error)
                        return false;
                connection->first += used;
                if (event.kind == ND_SPDY_NOTHING)
                        return true;
                if (translate(&event, &translated) && !connection->type->event(&translated, connection->session))
                        connection->paused = true;
        }
        return true;
}

/* False when there is nothing more to be had from this peer. */
static bool take(struct connection *connection) {
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

static bool receive(struct connection *connection) {
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

void connection_resume(struct connection *connection) {
        if (!connection->paused || connection->phase != OPEN)
                return;
        connection->paused = false;
        if (connection->working)
                return; /* take_frames() goes on by itself */
        if (!take(connection)) {
                (void) shutdown(connection->fd, SHUT_RDWR); /* the source will tell */
                return;
        }
        connection_flush(connection);
}

static int on_io([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct connection *connection = userdata;

        if ((events & (EPOLLHUP | EPOLLERR)) != 0 || ((events & EPOLLRDHUP) != 0 && connection->paused) ||
            ((events & EPOLLIN) != 0 && !receive(connection))) {
                end(connection);
                return 0;
        }
        connection_flush(connection);
        return 0;
}

static int on_time([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct connection *connection = userdata;
        uint64_t quiet_us = nd_clock_us() - connection->active_us;

        if (connection->spdy && connection->phase != SHUT && quiet_us < IDLE_S * ND_SECOND_US)
                set_timer(connection, IDLE_S - quiet_us / ND_SECOND_US);
        else
                end(connection);
        return 0;
}

struct nd_error *connection_new(const struct connection_owner *owner, int fd, struct connection **ret) {
        struct connection *connection = nd_new(struct connection);
        sd_event *loop = owner->daemon->loop;
        int r;

        connection->owner = owner;
        connection->fd = fd;
        connection->active_us = nd_clock_us();
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int) {1}, sizeof(int));
        r = sd_event_add_io(loop, &connection->source, fd, EPOLLIN | EPOLLRDHUP, on_io, connection);
        if (r >= 0)
                r = sd_event_add_time_relative(loop, &connection->timer, CLOCK_MONOTONIC, HEAD_S * ND_SECOND_US, ND_SECOND_US,
                                               on_time, connection);
        if (r < 0) {
                connection_free(connection);
                return nd_error_new(ND_INTERNAL, -r, "watch a connection");
        }
        *ret = connection;
        return nullptr;
}
