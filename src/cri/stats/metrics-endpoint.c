/* SPDX-License-Identifier: Apache-2.0 */
/* metrics-endpoint.c - see metrics-endpoint.h
 *
 * Theory of operation
 *   One request per connection, at most CLIENTS connections, deadline_us for each; a new
 *   connection beyond that evicts the oldest. The request head is read, the response is built at
 *   once and sent as the socket accepts it; then the connection is closed. If the listener
 *   cannot be opened, the timer @opening tries again each retry_us. A failure is logged when its
 *   reason is new.
 * Owns       the listener and its clients. */
#include "cri/stats/metrics-endpoint.h"

#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/vector.h"
#include "cri/core/config.h"
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
        char *where;
        uint64_t retry_us;
        cri_metrics_endpoint_format format;
        void *userdata;
        int fd;
        sd_event_source *source, *opening;
        /* why it does not listen, as logged; nullptr = not logged */
        char *refused;
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
        sd_event_source_disable_unref(scrape->opening);
        nd_close_fd(&scrape->fd);
        free(scrape->where);
        free(scrape->refused);
        free(scrape);
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

static struct nd_error *open_listener(struct cri_metrics_endpoint *scrape) {
        int r;

        nd_try(listen_where(scrape->where, &scrape->fd));
        r = sd_event_add_io(scrape->loop, &scrape->source, scrape->fd, EPOLLIN, on_client, scrape);
        if (r >= 0)
                return nullptr;
        nd_close_fd(&scrape->fd);
        return nd_error_new(ND_INTERNAL, -r, "watch the socket of metrics");
}

static void log_refusal(struct cri_metrics_endpoint *scrape, const char *reason) {
        const char *colon = strrchr(scrape->where, ':');
        nd_autofree char *remedy = nullptr;

        if (scrape->refused && nd_streq(scrape->refused, reason))
                return;
        nd_strset(&scrape->refused, reason);
        remedy = scrape->where[0] != '/' && colon
                         ? nd_format("'ss -lntp sport = %s' shows which process has the port; or choose another address for "
                                     "metrics in " CRI_CONFIG_PATH,
                                     colon)
                         : nd_strdup("choose another path for metrics in " CRI_CONFIG_PATH);
        nd_log(ND_LOG_WARNING, "metrics are not served; retrying", nd_field("address", scrape->where),
               nd_field("reason", reason), nd_field("remedy", remedy));
}

static void try_to_listen(struct cri_metrics_endpoint *scrape) {
        nd_autoerror struct nd_error *error = open_listener(scrape);

        if (error) {
                log_refusal(scrape, nd_error_text(error));
                (void) sd_event_source_set_time_relative(scrape->opening, scrape->retry_us);
        } else if (scrape->refused) {
                nd_log(ND_LOG_NOTICE, "metrics are served", nd_field("address", scrape->where));
        }
        (void) sd_event_source_set_enabled(scrape->opening, error ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_opening([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        try_to_listen(userdata);
        return 0;
}

struct cri_metrics_endpoint *cri_metrics_endpoint_new(const struct cri_metrics_endpoint_settings *settings) {
        struct cri_metrics_endpoint *scrape;

        if (nd_streq(settings->where, "off"))
                return nullptr;
        scrape = nd_new(struct cri_metrics_endpoint);
        *scrape = (struct cri_metrics_endpoint) {.loop = settings->loop,
                                                 .where = nd_strdup(settings->where),
                                                 .retry_us = settings->retry_us ?: cri_metrics_retry_us,
                                                 .format = settings->format,
                                                 .userdata = settings->userdata,
                                                 .fd = -EBADF};
        if (sd_event_add_time_relative(settings->loop, &scrape->opening, CLOCK_MONOTONIC, 0, 0, on_opening, scrape) < 0)
                abort(); /* out of memory is the only possible failure */
        try_to_listen(scrape);
        return scrape;
}
