/* SPDX-License-Identifier: Apache-2.0 */
/* metrics-endpoint.c - see metrics-endpoint.h
 *
 * Theory of operation
 *   One request per connection, at most CLIENTS connections, deadline_us for each; a new connection
 *   beyond that evicts the oldest. The request head is read, the response is built at once and sent
 *   as the socket accepts it; then the connection is closed.
 * Owns       the listener and its clients. */
#include "cri/stats/metrics-endpoint.h"

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/vector.h"
#include "cri/core/listener.h"
#include "cri/stats/telemetry.h"
#include "net/http-head.h"

enum {
        CLIENTS = 8,
        HEAD_MOST = 8 << 10,
};

static constexpr uint64_t deadline_us = 10 * ND_SECOND_US;

struct client {
        struct cri_metrics_endpoint *scrape;
        int fd;
        sd_event_source *source, *timer;
        struct nd_text input, answer;
        size_t sent;
};

struct cri_metrics_endpoint {
        sd_event *loop;
        cri_metrics_endpoint_format format;
        void *userdata;
        int fd;
        sd_event_source *source;
        nd_vector(struct client *) clients; /* oldest first */
};

static void client_free(struct client *client) {
        sd_event_source_disable_unref(client->source);
        sd_event_source_disable_unref(client->timer);
        nd_text_done(&client->input);
        nd_text_done(&client->answer);
        nd_close_fd(&client->fd);
        free(client);
}

static void end(struct client *client) {
        struct cri_metrics_endpoint *scrape = client->scrape;

        for (size_t i = 0; i < scrape->clients.count; i++)
                if (scrape->clients.items[i] == client) {
                        scrape->clients.count--;
                        memmove(scrape->clients.items + i, scrape->clients.items + i + 1,
                                (scrape->clients.count - i) * sizeof *scrape->clients.items);
                        break;
                }
        client_free(client);
}

void cri_metrics_endpoint_free(struct cri_metrics_endpoint *scrape) {
        if (!scrape)
                return;
        nd_vector_each (client, &scrape->clients)
                client_free(*client);
        nd_vector_done(&scrape->clients);
        sd_event_source_disable_unref(scrape->source);
        nd_close_fd(&scrape->fd);
        free(scrape);
}

static void scrape_done(struct cri_metrics_endpoint **scrape) {
        cri_metrics_endpoint_free(*scrape);
}

/* ---- one client ---- */

static void answer(struct client *client, const struct nd_http_head *head) {
        nd_autotext struct nd_text text = ND_TEXT(TELEMETRY_CEILING);

        client->answer.ceiling = TELEMETRY_CEILING + ND_HTTP_ANSWER;
        if (!nd_streq(head->path, "/metrics")) {
                nd_http_answer(&client->answer, 404, nullptr, "not found; metrics are at /metrics");
        } else if (!nd_streq(head->method, "GET")) {
                nd_http_answer(&client->answer, 405, nullptr, nullptr);
        } else {
                client->scrape->format(&text, client->scrape->userdata);
                nd_http_answer(&client->answer, text.overflow ? 500 : 200, nullptr,
                               text.overflow ? nullptr : nd_text_get(&text));
        }
}

/* False if the connection is closed. */
static bool receive(struct client *client) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autohead struct nd_http_head head = {};
        char buffer[2048];
        ssize_t n = recv(client->fd, buffer, sizeof buffer, MSG_DONTWAIT);
        size_t used = 0;

        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        if (n == 0 || client->input.length + (size_t) n > HEAD_MOST)
                return false;
        nd_text_append(&client->input, buffer, (size_t) n);
        error = nd_http_head_read(client->input.bytes, client->input.length, &head, &used);
        if (error) {
                client->answer.ceiling = ND_HTTP_ANSWER;
                nd_http_answer(&client->answer, nd_http_status(error), nullptr, nd_error_text(error));
        } else if (used > 0) {
                answer(client, &head);
        }
        if (client->answer.length > 0)
                (void) sd_event_source_set_io_events(client->source, EPOLLOUT);
        return true;
}

/* False if everything was sent or the peer is gone. */
static bool deliver(struct client *client) {
        while (client->sent < client->answer.length) {
                ssize_t n = send(client->fd, client->answer.bytes + client->sent, client->answer.length - client->sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0)
                        return errno == EAGAIN || errno == EINTR;
                client->sent += (size_t) n;
        }
        (void) shutdown(client->fd, SHUT_WR);
        return false;
}

static int on_socket([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct client *client = userdata;
        bool alive = client->answer.length > 0 ? deliver(client) : receive(client);

        if (!alive || (events & EPOLLERR))
                end(client);
        return 0;
}

static int on_deadline([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        end(userdata);
        return 0;
}

/* ---- the listener ---- */

static int on_client([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct cri_metrics_endpoint *scrape = userdata;
        sd_event *loop = scrape->loop;
        struct client *client;
        nd_autoclose int peer = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer < 0)
                return 0;
        if (scrape->clients.count >= CLIENTS)
                end(scrape->clients.items[0]);
        client = nd_new(struct client);
        *client = (struct client) {.scrape = scrape, .fd = nd_take_fd(peer), .input = ND_TEXT(HEAD_MOST)};
        nd_vector_push(&scrape->clients, client);
        if (sd_event_add_io(loop, &client->source, client->fd, EPOLLIN, on_socket, client) < 0 ||
            sd_event_add_time_relative(loop, &client->timer, CLOCK_MONOTONIC, deadline_us, ND_SECOND_US, on_deadline, client) <
                    0)
                end(client);
        return 0;
}

/* "127.0.0.1:9100", already validated by the configuration. */
static struct nd_error *listen_where(const char *where, int *ret_fd) {
        const char *colon = strrchr(where, ':');

        if (where[0] == '/')
                return cri_listener_unix(where, ret_fd);
        return cri_listener_loopback((uint16_t) strtoul(colon ? colon + 1 : "0", nullptr, 10), ret_fd);
}

struct nd_error *cri_metrics_endpoint_new(sd_event *loop, const char *where, cri_metrics_endpoint_format format,
                                          void *userdata, struct cri_metrics_endpoint **ret) {
        nd_cleanup(scrape_done) struct cri_metrics_endpoint *scrape = nullptr;
        int r;

        if (nd_streq(where, "off"))
                return nullptr;
        scrape = nd_new(struct cri_metrics_endpoint);
        *scrape = (struct cri_metrics_endpoint) {.loop = loop, .format = format, .userdata = userdata, .fd = -EBADF};
        nd_try(nd_error_wrap(listen_where(where, &scrape->fd), "metrics"));
        r = sd_event_add_io(loop, &scrape->source, scrape->fd, EPOLLIN, on_client, scrape);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "watch the metrics socket");
        *ret = nd_take_ptr(scrape);
        return nullptr;
}
