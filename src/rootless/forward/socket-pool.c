/* SPDX-License-Identifier: Apache-2.0 */
/* socket-pool.c - pool of pre-opened sockets of the node's network
 *
 * Theory of operation
 *   At most one request to init is in flight; its reply brings up to @CONTROL_DESCRIPTORS sockets,
 *   so a connection costs no round trip. When a burst has emptied the pool, listeners are paused
 *   until the reply arrives; clients wait in the kernel's backlog.
 *   A netlink socket of the node becomes readable when its addresses change; then we fetch them
 *   again.
 * Invariant  the pool holds only kinds that a listener uses. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "rootless/forward/forwarder.h"

enum {
        FULL = 48, /* per kind */
        LOW = 24,
        LOW_UDP = 40, /* one batch of datagrams may come from that many new clients */
};

static constexpr uint64_t call_timeout_us = 5 * ND_SECOND_US;

static void take_socket(struct rootless_forwarder *f, const char *name, int *fd) {
        struct rootless_socket_pool *s = &f->pool;
        enum rootless_socket_kind kind;

        if (rootless_socket_kind_parse(name, &kind) < 0)
                return;
        if (kind == SOCKET_WATCH && s->address_fd < 0) {
                s->address_fd = nd_take_fd(*fd);
                nd_ignore(rootless_forwarder_watch(f, s->address_fd, EPOLLIN, &s->address_watch));
        } else if (kind != SOCKET_WATCH && s->counts[kind] < CONTROL_DESCRIPTORS) {
                s->sockets[kind][s->counts[kind]++] = nd_take_fd(*fd);
        }
}

static void read_answer(struct rootless_forwarder *f, struct rootless_control *answer) {
        struct rootless_socket_pool *s = &f->pool;
        struct nd_netlink_address addresses[2] = {};
        size_t next = 0;

        nd_vector_each (field, &answer->fields) {
                struct nd_netlink_address address;

                if (nd_streq(field->key, "kept"))
                        s->kept = nd_streq(field->value, "1");
                else if (nd_streq(field->key, "why"))
                        nd_strset(&s->why, field->value);
                else if (nd_streq(field->key, "address") && nd_netlink_address_parse(field->value, &address) == 0 &&
                         addresses[address.family == AF_INET6].family == 0)
                        addresses[address.family == AF_INET6] = address;
                else if (nd_streq(field->key, "socket") && next < answer->descriptor_count)
                        take_socket(f, field->value, &answer->descriptors[next++]);
        }
        memcpy(s->addresses, addresses, sizeof addresses);
}

static void on_answer(struct rootless_forwarder *f, [[maybe_unused]] struct rootless_watch *watch,
                      [[maybe_unused]] uint32_t events) {
        nd_cleanup(rootless_control_done) struct rootless_control answer = {};
        nd_autoerror struct nd_error *error = rootless_control_receive(f->pool.fd, call_timeout_us, &answer);

        f->pool.asked = false;
        if (nd_error_code(error) == ND_CANCELLED) {
                f->over = true; /* init has exited, and the node with it */
                return;
        }
        if (!error && nd_streq(answer.verb, "done"))
                read_answer(f, &answer);
        /* A reply that was not received completely (out of descriptors) is requested again when
         * listeners are resumed. */
        if (!error)
                rootless_listener_resume_all(f);
}

static void on_addresses(struct rootless_forwarder *f, [[maybe_unused]] struct rootless_watch *watch,
                         [[maybe_unused]] uint32_t events) {
        char piece[4096];

        while (recv(f->pool.address_fd, piece, sizeof piece, MSG_DONTWAIT) > 0)
                ;
        f->pool.stale = true;
}

static size_t wanted(const struct rootless_socket_pool *s, size_t kind) {
        size_t low = kind == SOCKET_UDP4 || kind == SOCKET_UDP6 ? LOW_UDP : LOW;

        return s->used[kind] && s->counts[kind] < low ? FULL - s->counts[kind] : 0;
}

void rootless_socket_pool_refill(struct rootless_forwarder *f) {
        struct rootless_socket_pool *s = &f->pool;
        nd_autotext struct nd_text question = CONTROL_TEXT;
        nd_autoerror struct nd_error *error = nullptr;
        size_t left = CONTROL_DESCRIPTORS;
        bool any = s->stale;

        if (s->asked)
                return;
        rootless_control_begin(&question, "sockets");
        for (size_t kind = 0; kind < SOCKET_WATCH; kind++) {
                size_t count = wanted(s, kind) < left ? wanted(s, kind) : left;
                nd_autofree char *number = nullptr;

                if (count == 0)
                        continue;
                number = nd_format("%zu", count);
                rootless_control_add(&question, rootless_socket_kind_name((enum rootless_socket_kind) kind), number);
                left -= count;
                any = true;
        }
        if (!any)
                return;
        error = rootless_control_send(s->fd, &question, nullptr, 0);
        s->asked = !error;
        s->stale = false;
        f->over = f->over || nd_error_code(error) == ND_CANCELLED;
}

struct nd_error *rootless_socket_pool_open(struct rootless_forwarder *f, int init_fd) {
        nd_cleanup(rootless_control_done) struct rootless_control answer = {};
        nd_autotext struct nd_text question = CONTROL_TEXT;

        f->pool.fd = init_fd;
        f->pool.watch.ready = on_answer;
        f->pool.address_watch.ready = on_addresses;
        rootless_control_begin(&question, "sockets");
        rootless_control_add(&question, "prepare", "1");
        rootless_control_add(&question, "watch", "1");
        nd_try(rootless_control_call(init_fd, &question, nullptr, 0, call_timeout_us, &answer));
        read_answer(f, &answer);
        return rootless_forwarder_watch(f, init_fd, EPOLLIN, &f->pool.watch);
}

void rootless_socket_pool_done(struct rootless_socket_pool *s) {
        for (size_t kind = 0; kind < SOCKET_WATCH; kind++)
                for (size_t i = 0; i < s->counts[kind]; i++)
                        nd_close_fd(&s->sockets[kind][i]);
        nd_close_fd(&s->fd);
        nd_close_fd(&s->address_fd);
        free(s->why);
}

bool rootless_socket_pool_has(struct rootless_forwarder *f, enum rootless_socket_kind kind, size_t count) {
        /* The node may have got an address of another family after the port was published. */
        f->pool.used[kind] = true;
        return f->pool.counts[kind] >= count;
}

int rootless_socket_pool_take(struct rootless_forwarder *f, enum rootless_socket_kind kind) {
        struct rootless_socket_pool *s = &f->pool;

        if (s->counts[kind] == 0)
                return -EAGAIN;
        nd_assert(s->counts[kind] <= CONTROL_DESCRIPTORS);
        return s->sockets[kind][--s->counts[kind]];
}

/* ---- client addresses ---- */

static bool can_be_kept(const union rootless_sockaddr *client) {
        if (client->any.sa_family == AF_INET)
                return (ntohl(client->v4.sin_addr.s_addr) >> 24) != IN_LOOPBACKNET;
        return !IN6_IS_ADDR_LOOPBACK(&client->v6.sin6_addr) && !IN6_IS_ADDR_LINKLOCAL(&client->v6.sin6_addr);
}

static bool is_loopback(const union rootless_sockaddr *target) {
        return !can_be_kept(target); /* a server on loopback can answer only the node itself */
}

void rootless_socket_pool_bind_client(const struct rootless_forwarder *f, int fd, const union rootless_sockaddr *client,
                                      const union rootless_sockaddr *target, bool port) {
        union rootless_sockaddr from = *client;

        if (!f->pool.kept || client->any.sa_family != target->any.sa_family || !can_be_kept(client) || is_loopback(target))
                return;
        if (port && bind(fd, &from.any, rootless_sockaddr_length(&from)) == 0)
                return;
        /* The port is in use (the client is the host itself, whose address the node has) or
         * privileged: the address matters more. */
        if (from.any.sa_family == AF_INET)
                from.v4.sin_port = 0;
        else
                from.v6.sin6_port = 0;
        (void) !bind(fd, &from.any, rootless_sockaddr_length(&from));
}
