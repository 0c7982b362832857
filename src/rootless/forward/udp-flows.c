/* SPDX-License-Identifier: Apache-2.0 */
/* udp-flows.c - UDP: one socket in the node for each client
 *
 * Theory of operation
 *   A flow is identified by the client's address and the local address that it sent to. It has a
 *   socket in the node's network, connected to the server. Datagrams are received and sent in
 *   batches. A flow idle for @flow_idle_timeout_us is closed. At @FLOWS flows, the least recently
 *   used one is closed first, so one client with many addresses cannot lock out others.
 *   The hash is keyed: clients choose their addresses, and could otherwise cause collisions.
 * Invariant  every flow is in one bucket and in the LRU list. */
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "rootless/forward/forwarder.h"

enum {
        BUCKETS = 2048, /* a power of two */
        FLOWS = 4096,
        BATCH = 32,
        BATCHES = 8, /* per turn */
        DATAGRAM = 64 * 1024,
        CONTROL = 64,
};

static constexpr uint64_t flow_idle_timeout_us = 90 * ND_SECOND_US;

struct flow {
        struct rootless_watch watch;
        struct flow *bucket_next;
        struct flow *newer, *older;
        struct rootless_listener *listener;
        union rootless_sockaddr client;
        struct nd_netlink_address local; /* our address that the client uses */
        int fd;
        uint64_t used_us;
        bool closed;
};

struct rootless_flows {
        struct flow *buckets[BUCKETS];
        struct flow *newest, *oldest;
        struct flow *closed; /* linked by older */
        size_t count;
        uint64_t key[2];
        struct mmsghdr messages[BATCH];
        struct iovec vectors[BATCH];
        union rootless_sockaddr addresses[BATCH];
        union {
                struct cmsghdr header;
                char bytes[CONTROL];
        } controls[BATCH];
        char bytes[BATCH][DATAGRAM];
};

struct rootless_flows *rootless_flows_new(void) {
        struct rootless_flows *flows = nd_new(struct rootless_flows);

        if (getrandom(flows->key, sizeof flows->key, 0) != (ssize_t) sizeof flows->key)
                abort(); /* getrandom() never fails for 256 bytes or less */
        return flows;
}

/* ---- lookup ---- */

static uint64_t mix(uint64_t h, uint64_t value) {
        h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
        return h ^ (h >> 29);
}

static size_t bucket_of(const struct rootless_flows *flows, const struct rootless_listener *l,
                        const union rootless_sockaddr *client) {
        uint64_t h = mix(flows->key[0], (uint64_t) (uintptr_t) l), words[2] = {};

        if (client->any.sa_family == AF_INET) {
                words[0] = (uint64_t) client->v4.sin_addr.s_addr << 16 | client->v4.sin_port;
        } else {
                memcpy(words, &client->v6.sin6_addr, sizeof words);
                h = mix(h, client->v6.sin6_port);
        }
        return (size_t) (mix(mix(mix(h, words[0]), words[1]), flows->key[1]) >> 20) & (BUCKETS - 1);
}

static bool same_client(const union rootless_sockaddr *a, const union rootless_sockaddr *b) {
        if (a->any.sa_family != b->any.sa_family)
                return false;
        if (a->any.sa_family == AF_INET)
                return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
        return a->v6.sin6_port == b->v6.sin6_port && a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
               memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0;
}

/* ---- the LRU list ---- */

static void lru_remove(struct rootless_flows *flows, struct flow *flow) {
        *(flow->newer ? &flow->newer->older : &flows->newest) = flow->older;
        *(flow->older ? &flow->older->newer : &flows->oldest) = flow->newer;
        flow->newer = flow->older = nullptr;
}

static void lru_insert(struct rootless_flows *flows, struct flow *flow) {
        flow->older = flows->newest;
        *(flows->newest ? &flows->newest->newer : &flows->oldest) = flow;
        flows->newest = flow;
}

static void touch(struct rootless_forwarder *f, struct flow *flow) {
        flow->used_us = f->now_us;
        if (f->flows->newest == flow)
                return;
        lru_remove(f->flows, flow);
        lru_insert(f->flows, flow);
}

static void close_flow(struct rootless_forwarder *f, struct flow *flow) {
        struct rootless_flows *flows = f->flows;
        struct flow **at = &flows->buckets[bucket_of(flows, flow->listener, &flow->client)];

        while (*at && *at != flow)
                at = &(*at)->bucket_next;
        nd_assert(*at == flow);
        *at = flow->bucket_next;
        lru_remove(flows, flow);
        rootless_forwarder_unwatch(f, &flow->fd);
        rootless_listener_unref(flow->listener);
        flow->closed = true;
        flow->older = flows->closed;
        flows->closed = flow;
        flows->count--;
}

static void free_closed(struct rootless_flows *flows) {
        for (struct flow *flow = nd_take_ptr(flows->closed), *next; flow; flow = next) {
                next = flow->older;
                free(flow);
        }
}

bool rootless_flows_any(const struct rootless_forwarder *f) {
        return f->flows->count > 0;
}

void rootless_flows_expire(struct rootless_forwarder *f) {
        for (struct flow *flow = f->flows->oldest, *next; flow && flow->used_us + flow_idle_timeout_us < f->now_us;
             flow = next) {
                next = flow->newer;
                close_flow(f, flow);
        }
        free_closed(f->flows);
}

void rootless_flows_close(struct rootless_forwarder *f, struct rootless_listener *l) {
        for (struct flow *flow = f->flows->oldest, *next; flow; flow = next) {
                next = flow->newer;
                if (flow->listener == l)
                        close_flow(f, flow);
        }
}

void rootless_flows_free(struct rootless_forwarder *f) {
        if (!f->flows)
                return;
        for (struct flow *flow = f->flows->oldest, *next; flow; flow = next) {
                next = flow->newer;
                close_flow(f, flow);
        }
        free_closed(f->flows);
        free(f->flows);
        f->flows = nullptr;
}

/* ---- batches ---- */

static void prepare_batch(struct rootless_flows *flows, bool control) {
        for (size_t i = 0; i < BATCH; i++) {
                flows->vectors[i] = (struct iovec) {.iov_base = flows->bytes[i], .iov_len = DATAGRAM};
                flows->messages[i] = (struct mmsghdr) {.msg_hdr = {.msg_iov = &flows->vectors[i],
                                                                   .msg_iovlen = 1,
                                                                   .msg_name = control ? &flows->addresses[i] : nullptr,
                                                                   .msg_namelen = control ? sizeof flows->addresses[i] : 0,
                                                                   .msg_control = control ? &flows->controls[i] : nullptr,
                                                                   .msg_controllen = control ? sizeof flows->controls[i] : 0}};
        }
}

/* Sends a batch; datagrams for which the receiver has no room are lost, as usual for UDP. */
static void send_batch(int fd, struct mmsghdr *messages, size_t count) {
        for (size_t done = 0; done < count;) {
                int n = sendmmsg(fd, messages + done, (unsigned) (count - done), MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                /* skip a datagram that cannot be sent: too long or refused */
                done += n > 0 ? (size_t) n : 1;
        }
}

/* ---- to the client ---- */

static void name_source(struct msghdr *message, const struct nd_netlink_address *local) {
        struct cmsghdr *c = message->msg_control;

        if (local->family == AF_INET) {
                struct in_pktinfo info = {.ipi_spec_dst = local->v4};

                *c = (struct cmsghdr) {.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof info)};
                memcpy(CMSG_DATA(c), &info, sizeof info);
                message->msg_controllen = CMSG_SPACE(sizeof info);
        } else {
                struct in6_pktinfo info = {.ipi6_addr = local->v6};

                *c = (struct cmsghdr) {
                        .cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO, .cmsg_len = CMSG_LEN(sizeof info)};
                memcpy(CMSG_DATA(c), &info, sizeof info);
                message->msg_controllen = CMSG_SPACE(sizeof info);
        }
}

static bool answer_batch(struct rootless_forwarder *f, struct flow *flow) {
        struct rootless_flows *flows = f->flows;
        int n;

        prepare_batch(flows, false);
        n = recvmmsg(flow->fd, flows->messages, BATCH, MSG_DONTWAIT, nullptr);
        if (n < 0)
                /* ECONNREFUSED reports an earlier datagram; reading goes on */
                return errno == EINTR || errno == ECONNREFUSED;
        for (int i = 0; i < n; i++) {
                struct msghdr *m = &flows->messages[i].msg_hdr;

                flows->vectors[i].iov_len = flows->messages[i].msg_len;
                flow->listener->bytes_out += flows->messages[i].msg_len;
                m->msg_name = &flow->client;
                m->msg_namelen = rootless_sockaddr_length(&flow->client);
                m->msg_control = &flows->controls[i];
                m->msg_flags = 0;
                name_source(m, &flow->local);
        }
        touch(f, flow);
        if (!flow->listener->closed)
                send_batch(flow->listener->fd, flows->messages, (size_t) n);
        return n == BATCH;
}

static void on_answer(struct rootless_forwarder *f, struct rootless_watch *watch, [[maybe_unused]] uint32_t events) {
        struct flow *flow = (struct flow *) watch;

        if (flow->closed)
                return;
        for (int i = 0; i < BATCHES && answer_batch(f, flow); i++)
                ;
}

/* ---- to the server ---- */

static struct nd_netlink_address read_local(const struct msghdr *message) {
        struct nd_netlink_address local = {};

        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR((struct msghdr *) message, c)) {
                if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
                        struct in_pktinfo info;

                        memcpy(&info, CMSG_DATA(c), sizeof info);
                        local = (struct nd_netlink_address) {.family = AF_INET, .v4 = info.ipi_spec_dst};
                }
                if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
                        struct in6_pktinfo info;

                        memcpy(&info, CMSG_DATA(c), sizeof info);
                        local = (struct nd_netlink_address) {.family = AF_INET6, .v6 = info.ipi6_addr};
                }
        }
        return local;
}

static int dial(struct rootless_forwarder *f, struct rootless_listener *l, const union rootless_sockaddr *client) {
        union rootless_sockaddr target;
        enum rootless_socket_kind kind;
        int fd;

        rootless_listener_target(f, l, &target, &kind);
        fd = rootless_socket_pool_take(f, kind);
        if (fd < 0)
                return fd;
        rootless_socket_pool_bind_client(f, fd, client, &target, true);
        if (connect(fd, &target.any, rootless_sockaddr_length(&target)) < 0)
                nd_close_fd(&fd);
        return fd;
}

static struct flow *open_flow(struct rootless_forwarder *f, struct rootless_listener *l, const union rootless_sockaddr *client,
                              const struct nd_netlink_address *local, size_t bucket) {
        struct rootless_flows *flows = f->flows;
        struct flow *flow;
        int fd = dial(f, l, client);

        if (fd < 0)
                return nullptr;
        if (flows->count == FLOWS)
                close_flow(f, flows->oldest);
        flow = nd_new(struct flow);
        *flow = (struct flow) {.watch = {.ready = on_answer},
                               .listener = l,
                               .client = *client,
                               .local = *local,
                               .fd = fd,
                               .used_us = f->now_us};
        flow->bucket_next = flows->buckets[bucket];
        flows->buckets[bucket] = flow;
        lru_insert(flows, flow);
        flows->count++;
        l->users++;
        l->connections++;
        /* Without it there are no replies, and the flow expires. */
        nd_ignore(rootless_forwarder_watch(f, fd, EPOLLIN, &flow->watch));
        return flow;
}

static struct flow *get_flow(struct rootless_forwarder *f, struct rootless_listener *l, const union rootless_sockaddr *client,
                             const struct nd_netlink_address *local) {
        size_t bucket = bucket_of(f->flows, l, client);

        for (struct flow *flow = f->flows->buckets[bucket]; flow; flow = flow->bucket_next)
                if (flow->listener == l && same_client(&flow->client, client) && nd_netlink_address_equal(&flow->local, local))
                        return flow;
        return open_flow(f, l, client, local, bucket);
}

/* Sends a run of datagrams of one flow. */
static void forward(struct rootless_forwarder *f, struct flow *flow, size_t from, size_t to) {
        struct rootless_flows *flows = f->flows;

        for (size_t i = from; i < to; i++) {
                flows->vectors[i].iov_len = flows->messages[i].msg_len;
                flow->listener->bytes_in += flows->messages[i].msg_len;
                flows->messages[i].msg_hdr = (struct msghdr) {.msg_iov = &flows->vectors[i], .msg_iovlen = 1};
        }
        touch(f, flow);
        send_batch(flow->fd, flows->messages + from, to - from);
}

/* Whether the listener's filter rejects a datagram. */
static bool is_refused(const struct rootless_flows *flows, const struct rootless_listener *l, size_t i) {
        const union rootless_sockaddr *client = &flows->addresses[i];
        struct nd_netlink_address host = {.family = client->any.sa_family};

        if (!l->filter)
                return false;
        if (host.family == AF_INET)
                host.v4 = client->v4.sin_addr;
        else
                host.v6 = client->v6.sin6_addr;
        return !rootless_vxlan_filter_accepts(l->filter, &host, flows->bytes[i], flows->messages[i].msg_len);
}

static bool receive_batch(struct rootless_forwarder *f, struct rootless_listener *l) {
        struct rootless_flows *flows = f->flows;
        union rootless_sockaddr target;
        enum rootless_socket_kind kind;
        int n;

        rootless_listener_target(f, l, &target, &kind);
        if (!rootless_socket_pool_has(f, kind, BATCH)) {
                /* Each datagram may come from a new client; meanwhile they wait in the socket. */
                rootless_listener_pause(f, l);
                return false;
        }
        prepare_batch(flows, true);
        n = recvmmsg(l->fd, flows->messages, BATCH, MSG_DONTWAIT, nullptr);
        for (int i = 0, end; i < n; i = end) {
                struct nd_netlink_address local = read_local(&flows->messages[i].msg_hdr);
                bool refused = is_refused(flows, l, (size_t) i);
                struct flow *flow = refused ? nullptr : get_flow(f, l, &flows->addresses[i], &local);

                for (end = i + 1; end < n && same_client(&flows->addresses[end], &flows->addresses[i]); end++) {
                        struct nd_netlink_address other = read_local(&flows->messages[end].msg_hdr);

                        if (!nd_netlink_address_equal(&other, &local) || is_refused(flows, l, (size_t) end) != refused)
                                break;
                }
                if (flow)
                        forward(f, flow, (size_t) i, (size_t) end);
                else
                        l->refused += (uint64_t) (end - i);
        }
        return n == BATCH;
}

void rootless_flows_receive(struct rootless_forwarder *f, struct rootless_listener *l) {
        for (int i = 0; i < BATCHES && receive_batch(f, l); i++)
                ;
        rootless_socket_pool_refill(f);
}
