/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - see relay.h
 *
 * Theory of operation
 *   Each direction has a pipe. Data goes from the sender to the pipe and from the pipe to the
 *   receiver; nothing is read while the pipe has data, so a slow receiver slows the sender. The
 *   event sources of both sockets are level-triggered and have only the events that a direction
 *   waits for; a socket for which none waits is switched off, because a hangup is always reported.
 *   The end of one direction is passed on by shutdown(); an error ends the relay. A relay that
 *   carried nothing for @idle_us is ended.
 * Invariant  unless both directions have ended, at least one source is on. */
#include "rootless/broker/relay.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
        ENDS = 2,
        ROUNDS = 16,
        PIPE_BYTES = 1024 * 1024,
};

static constexpr uint64_t idle_us = 600 * ND_SECOND_US;
static constexpr uint64_t sweep_us = 60 * ND_SECOND_US;

struct direction {
        int pipe[2];
        size_t bytes; /* in the pipe */
        bool ended;   /* the sender has */
        bool shut;    /* the receiver knows */
};

struct relay {
        struct relay *next;
        struct rootless_broker_relays *relays;
        int fds[ENDS];
        sd_event_source *sources[ENDS];
        struct direction directions[ENDS]; /* by the sender */
        uint64_t active_us;
};

struct rootless_broker_relays {
        sd_event *loop;
        sd_event_source *sweep;
        struct relay *first;
        size_t count, limit;
};

static void relay_free(struct relay *relay) {
        struct rootless_broker_relays *relays = relay->relays;

        for (struct relay **link = &relays->first; *link; link = &(*link)->next)
                if (*link == relay) {
                        *link = relay->next;
                        relays->count--;
                        break;
                }
        for (int i = 0; i < ENDS; i++) {
                sd_event_source_disable_unref(relay->sources[i]);
                nd_close_fd(&relay->fds[i]);
                nd_close_fd(&relay->directions[i].pipe[0]);
                nd_close_fd(&relay->directions[i].pipe[1]);
        }
        free(relay);
}

/* Moves what can be moved. False on an error of either socket. */
static bool pump(struct relay *relay, int from) {
        struct direction *d = &relay->directions[from];
        int to = 1 - from;

        for (int round = 0; round < ROUNDS && !d->shut; round++) {
                ssize_t n;

                if (d->bytes == 0 && !d->ended) {
                        n = splice(relay->fds[from], nullptr, d->pipe[1], nullptr, PIPE_BYTES,
                                   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
                        if (n < 0)
                                return errno == EAGAIN || errno == EINTR;
                        d->ended = n == 0;
                        d->bytes = (size_t) n;
                }
                if (d->bytes > 0) {
                        n = splice(d->pipe[0], nullptr, relay->fds[to], nullptr, d->bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
                        if (n < 0)
                                return errno == EAGAIN || errno == EINTR;
                        d->bytes -= (size_t) n;
                        relay->active_us = nd_clock_us();
                }
                if (d->ended && d->bytes == 0) {
                        d->shut = true;
                        (void) shutdown(relay->fds[to], SHUT_WR);
                }
        }
        return true;
}

static void update(struct relay *relay) {
        for (int i = 0; i < ENDS; i++) {
                const struct direction *out = &relay->directions[i], *in = &relay->directions[1 - i];
                uint32_t events = (!out->ended && out->bytes == 0 ? EPOLLIN : 0) | (in->bytes > 0 ? EPOLLOUT : 0);

                if (events)
                        (void) sd_event_source_set_io_events(relay->sources[i], events);
                (void) sd_event_source_set_enabled(relay->sources[i], events ? SD_EVENT_ON : SD_EVENT_OFF);
        }
}

static int on_ready([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct relay *relay = userdata;

        if (!pump(relay, 0) || !pump(relay, 1) || (relay->directions[0].shut && relay->directions[1].shut))
                relay_free(relay);
        else
                update(relay);
        return 0;
}

static bool open_pipes(struct relay *relay) {
        for (int i = 0; i < ENDS; i++) {
                if (pipe2(relay->directions[i].pipe, O_CLOEXEC | O_NONBLOCK) < 0)
                        return false;
                /* The pipe size of a user is limited; a smaller pipe works, too. */
                (void) fcntl(relay->directions[i].pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
        }
        return true;
}

bool rootless_broker_relay_add(struct rootless_broker_relays *relays, int tcp, int local) {
        struct relay *relay = nd_calloc(1, sizeof *relay);

        *relay = (struct relay) {.next = relays->first,
                                 .relays = relays,
                                 .fds = {tcp, local},
                                 .directions = {{.pipe = {-EBADF, -EBADF}}, {.pipe = {-EBADF, -EBADF}}},
                                 .active_us = nd_clock_us()};
        relays->first = relay;
        relays->count++;
        if (relays->count > relays->limit || !open_pipes(relay) ||
            sd_event_add_io(relays->loop, &relay->sources[0], tcp, EPOLLIN, on_ready, relay) < 0 ||
            sd_event_add_io(relays->loop, &relay->sources[1], local, EPOLLIN, on_ready, relay) < 0) {
                relay_free(relay);
                return false;
        }
        return true;
}

static int on_sweep(sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct rootless_broker_relays *relays = userdata;
        uint64_t now = nd_clock_us();

        for (struct relay *relay = relays->first, *next; relay; relay = next) {
                next = relay->next;
                if (now - relay->active_us > idle_us)
                        relay_free(relay);
        }
        (void) sd_event_source_set_time_relative(source, sweep_us);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

struct nd_error *rootless_broker_relays_new(sd_event *loop, size_t limit, struct rootless_broker_relays **ret) {
        struct rootless_broker_relays *relays = nd_calloc(1, sizeof *relays);
        int r;

        *relays = (struct rootless_broker_relays) {.loop = loop, .limit = limit};
        r = sd_event_add_time_relative(loop, &relays->sweep, CLOCK_MONOTONIC, sweep_us, ND_SECOND_US, on_sweep, relays);
        if (r < 0) {
                free(relays);
                return nd_error_new(ND_INTERNAL, -r, "create a timer");
        }
        *ret = relays;
        return nullptr;
}

void rootless_broker_relays_free(struct rootless_broker_relays *relays) {
        if (!relays)
                return;
        for (struct relay *relay = relays->first, *next; relay; relay = next) {
                next = relay->next;
                relay_free(relay);
        }
        sd_event_source_disable_unref(relays->sweep);
        free(relays);
}
