/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.c - see tunnel.h
 *
 * Theory of operation
 *   @HEAD sends the request and reads the response head; then (@OPEN) data flows both ways over
 *   channel 0, as with TCP: each direction ends by itself. Channel 1 carries the reason if the
 *   pod's port cannot be reached; its end says that the other side has finished the tunnel. Both
 *   channels begin with the port, two bytes.
 *   The client is read only while the queue to nodens-cri has room, and nodens-cri is read only
 *   while the client has taken everything: memory is bounded, and a slow side slows the other.
 * Owns       both sockets. */
#include "cli/core/tunnel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "cli/core/upgrade.h"

enum {
        CHANNEL_DATA,
        CHANNEL_ERROR,
        CHANNELS,
};

enum {
        PORT_BYTES = 2,
        ROOM_LEAST = 4 << 10,
        PIECE = UPGRADE_PIECE,
        PENDING_MOST = 64 << 10, /* never reached: one piece, or what came with the head */
        ERROR_TEXT = 4 << 10,
};

enum phase {
        HEAD,
        OPEN,
};

struct cli_tunnel {
        enum phase phase;
        struct cli_upgrade upgrade;
        struct nd_channel_mux *channels;
        int client;
        sd_event_source *remote, *local;
        size_t skip[CHANNELS];  /* bytes of the port to come */
        struct nd_text pending; /* for the client */
        struct nd_text reason;  /* from the error channel */
        /* client_over: it sends no more; server_over: the pod's server sends no more; finished: the
         * tunnel has ended on the other side; lost: the connection broke before that */
        bool client_over, server_over, finished, lost;
        cli_tunnel_callback ended;
        void *userdata;
        char buffer[PIECE];
};

void cli_tunnel_free(struct cli_tunnel *tunnel) {
        if (!tunnel)
                return;
        sd_event_source_disable_unref(tunnel->remote);
        sd_event_source_disable_unref(tunnel->local);
        cli_upgrade_done(&tunnel->upgrade);
        nd_channel_mux_free(tunnel->channels);
        nd_close_fd(&tunnel->client);
        nd_text_done(&tunnel->pending);
        nd_text_done(&tunnel->reason);
        free(tunnel);
}

static void tunnel_done(struct cli_tunnel **tunnel) {
        cli_tunnel_free(*tunnel);
}

/* epoll reports a hangup even without events to wait for: switch the source off then. */
static void watch(sd_event_source *source, uint32_t events) {
        (void) sd_event_source_set_io_events(source, events);
        (void) sd_event_source_set_enabled(source, events == 0 ? SD_EVENT_OFF : SD_EVENT_ON);
}

/* False when the client is gone. */
static bool push(struct cli_tunnel *tunnel) {
        struct nd_text *pending = &tunnel->pending;
        size_t done = 0;
        ssize_t n = 0;

        while (done < pending->length &&
               (n = send(tunnel->client, pending->bytes + done, pending->length - done, MSG_NOSIGNAL)) > 0)
                done += (size_t) n;
        if (done > 0)
                memmove(pending->bytes, pending->bytes + done, pending->length - done);
        pending->length -= done;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
                return false;
        if (tunnel->server_over && pending->length == 0)
                (void) shutdown(tunnel->client, SHUT_WR);
        return true;
}

static struct nd_error *result(const struct cli_tunnel *tunnel) {
        if (tunnel->reason.length > 0)
                return nd_error_new(ND_UNAVAILABLE, 0, "%s", nd_text_get(&tunnel->reason));
        return tunnel->lost ? nd_error_new(ND_UNAVAILABLE, 0, "connection to nodens-cri lost") : nullptr;
}

/* Sends what can be sent, and waits for more or ends. May free the tunnel. */
static void proceed(struct cli_tunnel *tunnel) {
        bool gone = !push(tunnel);
        uint32_t remote, local = 0;

        if (gone || ((tunnel->finished || tunnel->lost) && tunnel->pending.length == 0)) {
                tunnel->ended(gone ? nullptr : result(tunnel), tunnel->userdata);
                return;
        }
        remote = cli_upgrade_flush(&tunnel->upgrade, tunnel->channels);
        if (tunnel->pending.length > 0)
                remote &= ~(uint32_t) EPOLLIN;
        if (tunnel->finished || tunnel->lost)
                remote = 0;
        if (tunnel->pending.length > 0)
                local |= EPOLLOUT;
        if (tunnel->phase == OPEN && !tunnel->client_over && nd_channel_mux_room(tunnel->channels) >= ROOM_LEAST)
                local |= EPOLLIN;
        watch(tunnel->remote, remote);
        watch(tunnel->local, local);
}

/* ---- the client ---- */

static int on_client([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct cli_tunnel *tunnel = userdata;
        size_t room = tunnel->phase == OPEN ? nd_channel_mux_room(tunnel->channels) : 0;
        ssize_t n;

        if ((events & ~(uint32_t) EPOLLOUT) == 0 || tunnel->client_over || room < ROOM_LEAST) {
                proceed(tunnel);
                return 0;
        }
        n = recv(tunnel->client, tunnel->buffer, room < PIECE ? room : PIECE, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n < 0) { /* it was reset */
                tunnel->ended(nullptr, tunnel->userdata);
                return 0;
        }
        if (n > 0) {
                nd_channel_mux_write(tunnel->channels, CHANNEL_DATA, tunnel->buffer, (size_t) n);
        } else {
                nd_channel_mux_end(tunnel->channels, CHANNEL_DATA);
                tunnel->client_over = true;
        }
        proceed(tunnel);
        return 0;
}

/* ---- nodens-cri ---- */

static void take_data(struct cli_tunnel *tunnel, const struct nd_channel_event *event) {
        size_t *skip = &tunnel->skip[event->channel], n = event->length < *skip ? event->length : *skip;

        *skip -= n;
        nd_text_append(event->channel == CHANNEL_DATA ? &tunnel->pending : &tunnel->reason, event->bytes + n,
                       event->length - n);
}

static struct nd_error *take_frames(struct cli_tunnel *tunnel, char *bytes, size_t length) {
        while (!tunnel->finished) {
                struct nd_channel_event event;
                size_t used;

                nd_try(nd_channel_mux_receive(tunnel->channels, bytes, length, &used, &event));
                bytes += used;
                length -= used;
                if (event.kind == ND_CHANNEL_NOTHING)
                        return nullptr;
                if (event.kind == ND_CHANNEL_DATA && event.channel < CHANNELS)
                        take_data(tunnel, &event);
                if (event.kind == ND_CHANNEL_FIN && event.channel == CHANNEL_DATA)
                        tunnel->server_over = true;
                if (event.kind == ND_CHANNEL_CLOSED || (event.kind == ND_CHANNEL_FIN && event.channel == CHANNEL_ERROR))
                        tunnel->finished = true;
        }
        return nullptr;
}

static struct nd_error *take_head(struct cli_tunnel *tunnel, const char *bytes, size_t length) {
        bool complete;

        nd_try(cli_upgrade_take(&tunnel->upgrade, bytes, length, &complete));
        if (!complete)
                return nullptr;
        tunnel->channels = nd_channel_mux_new(ND_WEBSOCKET_CLIENT, tunnel->upgrade.protocol, 0);
        tunnel->phase = OPEN;
        return take_frames(tunnel, tunnel->upgrade.head.bytes, tunnel->upgrade.head.length);
}

static int on_remote([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, uint32_t events, void *userdata) {
        struct cli_tunnel *tunnel = userdata;
        struct nd_error *error = nullptr;
        ssize_t n;

        if ((events & ~(uint32_t) EPOLLOUT) == 0) {
                proceed(tunnel);
                return 0;
        }
        n = recv(tunnel->upgrade.fd, tunnel->buffer, PIECE, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n > 0)
                error = tunnel->phase == HEAD ? take_head(tunnel, tunnel->buffer, (size_t) n)
                                              : take_frames(tunnel, tunnel->buffer, (size_t) n);
        else
                tunnel->lost = true;
        if (error)
                tunnel->ended(error, tunnel->userdata);
        else
                proceed(tunnel);
        return 0;
}

struct nd_error *cli_tunnel_new(sd_event *loop, const char *url, int client, cli_tunnel_callback ended, void *userdata,
                                struct cli_tunnel **ret) {
        nd_cleanup(tunnel_done) struct cli_tunnel *tunnel = nd_new(struct cli_tunnel);

        tunnel->upgrade = UPGRADE_NONE;
        tunnel->client = client;
        tunnel->skip[CHANNEL_DATA] = tunnel->skip[CHANNEL_ERROR] = PORT_BYTES;
        tunnel->pending = ND_TEXT(PENDING_MOST);
        tunnel->reason = ND_TEXT(ERROR_TEXT);
        tunnel->ended = ended;
        tunnel->userdata = userdata;
        (void) fcntl(client, F_SETFL, O_NONBLOCK);
        nd_try(cli_upgrade_begin(url, "v5.channel.k8s.io", &tunnel->upgrade));
        if (sd_event_add_io(loop, &tunnel->remote, tunnel->upgrade.fd, EPOLLIN | EPOLLOUT, on_remote, tunnel) < 0 ||
            sd_event_add_io(loop, &tunnel->local, client, 0, on_client, tunnel) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch a connection");
        (void) sd_event_source_set_enabled(tunnel->local, SD_EVENT_OFF);
        *ret = nd_take_ptr(tunnel);
        return nullptr;
}
