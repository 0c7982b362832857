/* SPDX-License-Identifier: Apache-2.0 */
/* forwarder.h - the forwarder: carries connections and datagrams from the machine's ports to the node
 *
 * It owns nothing but descriptors that others made: listening sockets from the controller (api.h), sockets of the node's network from the
 * holder (sockets.h). It has no capability, opens no file and makes no socket; a filter of system calls holds it to that.
 *
 *      forwarder.c   the loop, what the controller says, listening sockets
 *      socket-pool.c    sockets of the node's network, asked for before they are needed
 *      tcp-relay.c     TCP: two sockets and what flows between
 *      udp-flows.c     UDP: one socket in the node for each client */
#pragma once

#include <netinet/in.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "rootless/network/sockets.h"

struct nd_forwarder;

/* Serves a node that runs, until it ends. */
[[nodiscard]] struct nd_error *rootless_forwarder_run(const char *name);

/* First member of everything that epoll tells about. */
struct nd_watch {
        void (*ready)(struct nd_forwarder *f, struct nd_watch *watch, uint32_t events);
};

union nd_sockaddr {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};
[[nodiscard]] socklen_t nd_sockaddr_length(const union nd_sockaddr *address);
void nd_sockaddr_make(const struct nd_address *address, uint16_t port, union nd_sockaddr *ret);

/* One listening socket of a published port. Lives as long as it is published or has connections. */
struct nd_listener {
        struct nd_watch watch;
        struct nd_listener *next;
        int fd;
        bool stream;
        bool paused;              /* epoll does not look at it: something is used up */
        bool closed;              /* no longer published */
        uint64_t id;              /* the controller's number of the port */
        char *spec;               /* the controller's words about it, which it gets back */
        struct nd_address target; /* family 0 = the node's own address */
        uint16_t target_port;
        int family;
        uint64_t users; /* relays and flows */

        uint64_t connections, refused, bytes_in, bytes_out; /* in = to the node */
};

/* Sockets of the node's network that wait for a use. */
struct nd_supply {
        struct nd_watch watch;       /* of the connection to the holder */
        struct nd_watch watch_watch; /* of what tells that the node's addresses have changed */
        int fd;
        int watch_fd;
        int sockets[ND_SOCKET_WATCH][ND_CONTROL_DESCRIPTORS];
        size_t counts[ND_SOCKET_WATCH];
        bool used[ND_SOCKET_WATCH]; /* somebody listens for this kind */
        bool asked;
        bool stale; /* the addresses are to be asked for again */
        bool kept;  /* sockets may have clients' addresses */
        char *why;  /* why they may not */
        struct nd_address addresses[2];
};

struct nd_relay;
struct nd_flows;

enum {
        ND_PIPES = 32,         /* kept for the next who needs one */
        ND_BUFFER = 64 * 1024, /* of what is copied rather than spliced */
        ND_PIPE_BYTES = 1024 * 1024,
};

struct nd_forwarder {
        int epoll;
        struct nd_supply supply;
        struct nd_watch control_watch;
        int control_fd; /* where controllers connect */
        struct nd_listener *listeners;
        struct nd_relay *relays_again; /* have more to do than one turn allows */
        struct nd_relay *relays_dead;  /* freed when no event can name them any more */
        size_t relay_count, relay_most;
        int pipes[ND_PIPES][2];
        size_t pipe_count;
        struct nd_flows *flows;
        int watchdog_fd;      /* the manager's, connected; -EBADF = it does not watch */
        uint64_t watchdog_us; /* how often we report to it */
        uint64_t fed_us;      /* when it was last */
        uint64_t now_us;      /* when the loop woke */
        uint64_t paused_us;   /* when a listener was paused for want of something; 0 = none is */
        uint64_t exhausted;   /* how often that was */
        char *buffer;
        bool over;
};

[[nodiscard]] struct nd_error *nd_forward_watch(struct nd_forwarder *f, int fd, uint32_t events, struct nd_watch *watch);
/* Closes a descriptor that is watched: nothing is told of it any more. Closing alone would not do, since epoll knows files: one of which
 * somebody else still has a descriptor (the holder, that has just sent it) stays in there, and its events name what was freed. */
void nd_forward_unwatch(const struct nd_forwarder *f, int *fd);

/* Nothing more can be accepted for now; goes on when something is closed, or after a while. */
void nd_listener_pause(struct nd_forwarder *f, struct nd_listener *l);
void nd_listeners_resume(struct nd_forwarder *f);
void nd_listener_unuse(struct nd_listener *l); /* a relay or flow of it is gone */
/* Where a connection goes, and with which kind of socket. */
void nd_listener_target(const struct nd_forwarder *f, const struct nd_listener *l, union nd_sockaddr *ret,
                        enum nd_socket_kind *ret_kind);

/* socket-pool.c */
[[nodiscard]] struct nd_error *nd_supply_open(struct nd_forwarder *f, int holder_fd);
void nd_supply_done(struct nd_supply *s);
void nd_supply_refill(struct nd_forwarder *f); /* asks, when it is time to */
/* Whether so many are there; from now on that kind is kept. */
[[nodiscard]] bool nd_supply_has(struct nd_forwarder *f, enum nd_socket_kind kind, size_t count);
[[nodiscard]] int nd_supply_take(struct nd_forwarder *f, enum nd_socket_kind kind); /* -EAGAIN when none is left */
/* Gives a socket the client's address, if that can be: not that of a loopback or a link. */
void nd_supply_bind(const struct nd_forwarder *f, int fd, const union nd_sockaddr *client, const union nd_sockaddr *target,
                    bool port);

/* tcp-relay.c */
void nd_relay_accept(struct nd_forwarder *f, struct nd_listener *l);
void nd_relays_turn(struct nd_forwarder *f); /* goes on with those that have more to do */
void nd_relays_bury(struct nd_forwarder *f);

/* udp-flows.c */
[[nodiscard]] struct nd_flows *nd_flows_new(void);
void nd_flows_free(struct nd_forwarder *f);
void nd_flows_receive(struct nd_forwarder *f, struct nd_listener *l);
void nd_flows_close(struct nd_forwarder *f, struct nd_listener *l); /* those of one listener */
void nd_flows_expire(struct nd_forwarder *f);
[[nodiscard]] bool nd_flows_any(const struct nd_forwarder *f);
