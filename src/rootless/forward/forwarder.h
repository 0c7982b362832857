/* SPDX-License-Identifier: Apache-2.0 */
/* forwarder.h - the forwarder: forwards connections and datagrams from ports of the host to the
 * node
 *
 * It uses only descriptors that others opened: listening sockets from the controller
 * (controller.h), sockets of the node's network from init (sockets.h). It has no capabilities,
 * opens no files and creates no sockets; a system call filter enforces that.
 *
 *      forwarder.c     the loop, requests of the controller, listening sockets
 *      socket-pool.c   pool of pre-opened sockets of the node's network
 *      tcp-relay.c     TCP: copies between the client's socket and the server's
 *      udp-flows.c     UDP: one socket in the node for each client
 *      confine.c       the system call filter */
#pragma once

#include <netinet/in.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "rootless/forward/watchdog.h"
#include "rootless/network/sockets.h"
#include "rootless/network/vxlan-filter.h"

struct rootless_forwarder;

/* Serves a running node until it ends. */
[[nodiscard]] struct nd_error *rootless_forwarder_run(const char *name);

/* First member of every object that is registered with epoll. */
struct rootless_watch {
        void (*ready)(struct rootless_forwarder *f, struct rootless_watch *watch, uint32_t events);
};

union rootless_sockaddr {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};
[[nodiscard]] socklen_t rootless_sockaddr_length(const union rootless_sockaddr *address);
void rootless_sockaddr_make(const struct nd_netlink_address *address, uint16_t port, union rootless_sockaddr *ret);

/* One listening socket of a published port. Lives as long as it is published or has connections. */
struct rootless_listener {
        struct rootless_watch watch;
        struct rootless_listener *next;
        int fd;
        bool stream;
        bool paused;                      /* not polled because a resource is exhausted */
        bool closed;                      /* no longer published */
        uint64_t id;                      /* the controller's ID of the port */
        char *spec;                       /* the controller's text, returned in lists */
        struct nd_netlink_address target; /* family 0 = the node's address */
        uint16_t target_port;
        int family;
        struct rootless_vxlan_filter *filter; /* of datagrams; nullptr = all are accepted */
        uint64_t users;                       /* number of relays and flows */

        uint64_t connections, refused, bytes_in, bytes_out; /* in = to the node */
};

/* Pre-opened sockets of the node's network. */
struct rootless_socket_pool {
        struct rootless_watch watch; /* the connection to init */
        /* netlink socket, readable when the node's addresses change */
        struct rootless_watch address_watch;
        int fd;
        int address_fd;
        int sockets[SOCKET_WATCH][CONTROL_DESCRIPTORS];
        size_t counts[SOCKET_WATCH];
        bool used[SOCKET_WATCH]; /* a listener uses this kind */
        bool asked;
        bool stale; /* the addresses must be fetched again */
        bool kept;  /* sockets can be bound to client addresses */
        char *why;  /* why they cannot */
        struct nd_netlink_address addresses[2];
};

struct rootless_relay;
struct rootless_flows;

enum {
        FORWARDER_PIPES = 32,               /* kept for reuse */
        FORWARDER_BUFFER_BYTES = 64 * 1024, /* for data that is copied, not spliced */
        FORWARDER_PIPE_BYTES = 1024 * 1024,
};

struct rootless_forwarder {
        const char *name; /* of the node */
        int epoll;
        struct rootless_socket_pool pool;
        struct rootless_watch control_watch;
        int control_fd; /* where controllers connect */
        struct rootless_listener *listeners;
        struct rootless_relay *relays_pending; /* have more to do than one turn allows */
        struct rootless_relay *relays_closed;  /* freed when no event can refer to them any more */
        size_t relay_count, relay_most;
        int pipes[FORWARDER_PIPES][2];
        size_t pipe_count;
        struct rootless_flows *flows;
        struct rootless_watchdog watchdog;
        uint64_t now_us;    /* when epoll_wait() returned */
        uint64_t paused_us; /* when a listener was paused for lack of a resource; 0 = none is */
        uint64_t exhausted; /* number of such pauses */
        char *buffer;
        bool warned; /* that client addresses are not kept */
        bool over;
};

[[nodiscard]] struct nd_error *rootless_forwarder_watch(struct rootless_forwarder *f, int fd, uint32_t events,
                                                        struct rootless_watch *watch);
/* Closes a watched descriptor and removes it from epoll. close() alone is not enough: epoll tracks
 * open files, and a file of which another process still has a descriptor (init, which has just sent
 * it) would stay registered, with events that point to freed memory. */
void rootless_forwarder_unwatch(const struct rootless_forwarder *f, int *fd);

/* Stops accepting for now; resumes when something is closed, or after a while. */
void rootless_listener_pause(struct rootless_forwarder *f, struct rootless_listener *l);
void rootless_listener_resume_all(struct rootless_forwarder *f);
void rootless_listener_unref(struct rootless_listener *l); /* a relay or flow of it has ended */
/* Chooses the target address of a connection and the kind of socket for it. */
void rootless_listener_target(const struct rootless_forwarder *f, const struct rootless_listener *l,
                              union rootless_sockaddr *ret, enum rootless_socket_kind *ret_kind);

/* socket-pool.c */
[[nodiscard]] struct nd_error *rootless_socket_pool_open(struct rootless_forwarder *f, int init_fd);
void rootless_socket_pool_done(struct rootless_socket_pool *s);
void rootless_socket_pool_refill(struct rootless_forwarder *f); /* sends a request if needed */
/* Returns whether so many are in the pool; from now on that kind is kept in it. */
[[nodiscard]] bool rootless_socket_pool_has(struct rootless_forwarder *f, enum rootless_socket_kind kind, size_t count);
/* -EAGAIN when none is left */
[[nodiscard]] int rootless_socket_pool_take(struct rootless_forwarder *f, enum rootless_socket_kind kind);
/* Binds a socket to the client's address if possible: not to a loopback or link-local one. */
void rootless_socket_pool_bind_client(const struct rootless_forwarder *f, int fd, const union rootless_sockaddr *client,
                                      const union rootless_sockaddr *target, bool port);

/* tcp-relay.c */
void rootless_relay_accept(struct rootless_forwarder *f, struct rootless_listener *l);
/* continues relays that have more to do */
void rootless_relay_continue(struct rootless_forwarder *f);
void rootless_relay_free_closed(struct rootless_forwarder *f);

/* udp-flows.c */
[[nodiscard]] struct rootless_flows *rootless_flows_new(void);
void rootless_flows_free(struct rootless_forwarder *f);
void rootless_flows_receive(struct rootless_forwarder *f, struct rootless_listener *l);
/* closes the flows of one listener */
void rootless_flows_close(struct rootless_forwarder *f, struct rootless_listener *l);
void rootless_flows_expire(struct rootless_forwarder *f);
[[nodiscard]] bool rootless_flows_any(const struct rootless_forwarder *f);
