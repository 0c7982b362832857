/* SPDX-License-Identifier: Apache-2.0 */
/* forwarder.c - see forwarder.h
 *
 * Theory of operation
 *   One thread and one epoll, without sd-event: there is one kind of source, and every connection
 *   passes here. Objects closed while events are handled are freed afterwards, since later events
 *   of the same epoll_wait() may refer to them.
 *   Controllers connect to forward.sock and send requests (control.h):
 *     listen   id, spec, type (tcp or udp), family (4 or 6), target, port, and the socket; serves
 *     it until it is closed; with filter, only datagrams that it accepts (vxlan-filter.h)
 *     close    id; accepts no new connections; existing ones go on, UDP flows end
 *     list     from; returns listening sockets with counters and descriptors, so that a new
 *     controller can adopt those of an old one
 *   A controller may die and come back; connections and listening sockets stay. When this process
 *   dies the controller still has the listening sockets, so clients wait in their backlog until the
 *   next forwarder gets them.
 * Invariant  a listening socket is closed only on request of a controller. */
#include "rootless/forward/forwarder.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/unix.h"
#include "rootless/core/node.h"
#include "rootless/forward/confine.h"
#include "sys/calls.h"
#include "sys/notify.h"

enum {
        EVENTS = 256,
        BACKLOG = 16,
        CONTROLLERS = 16,
        LISTED = 48,          /* entries per reply */
        RESERVE = 4096 + 512, /* descriptors for flows, the socket pool and pipes */
        LISTENERS = 8192,
};

static constexpr uint64_t resume_delay_us = 100 * ND_MS_US;
static constexpr uint64_t expire_interval_us = 5 * ND_SECOND_US;

struct controller {
        struct rootless_watch watch;
        int fd;
        bool used;
};

/* ---- addresses ---- */

socklen_t rootless_sockaddr_length(const union rootless_sockaddr *address) {
        return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}

void rootless_sockaddr_make(const struct nd_netlink_address *address, uint16_t port, union rootless_sockaddr *ret) {
        *ret = (union rootless_sockaddr) {};
        if (address->family == AF_INET)
                ret->v4 = (struct sockaddr_in) {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address->v4};
        else
                ret->v6 = (struct sockaddr_in6) {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = address->v6};
}

/* ---- listening sockets ---- */

struct nd_error *rootless_forwarder_watch(struct rootless_forwarder *f, int fd, uint32_t events,
                                          struct rootless_watch *watch) {
        struct epoll_event event = {.events = events, .data.ptr = watch};

        if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "watch a socket");
        return nullptr;
}

void rootless_forwarder_unwatch(const struct rootless_forwarder *f, int *fd) {
        if (*fd >= 0)
                (void) epoll_ctl(f->epoll, EPOLL_CTL_DEL, *fd, nullptr);
        nd_close_fd(fd);
}

static void set_polled(struct rootless_forwarder *f, struct rootless_listener *l, bool look) {
        struct epoll_event event = {.events = look ? EPOLLIN : 0, .data.ptr = &l->watch};

        (void) epoll_ctl(f->epoll, EPOLL_CTL_MOD, l->fd, &event);
        l->paused = !look;
}

void rootless_listener_pause(struct rootless_forwarder *f, struct rootless_listener *l) {
        set_polled(f, l, false);
        f->paused_us = f->now_us;
        f->exhausted++;
}

void rootless_listener_resume_all(struct rootless_forwarder *f) {
        f->paused_us = 0;
        for (struct rootless_listener *l = f->listeners; l; l = l->next)
                if (l->paused && !l->closed)
                        set_polled(f, l, true);
}

/* Prefers the node's address of the client's family, so that the client's address can be kept; else
 * the other family; a node without addresses gets its loopback. */
static struct nd_netlink_address target_address(const struct rootless_forwarder *f, const struct rootless_listener *l) {
        const struct nd_netlink_address *own = f->pool.addresses;
        struct nd_netlink_address loopback = {.family = l->family};

        if (l->target.family)
                return l->target;
        if (own[l->family == AF_INET6].family)
                return own[l->family == AF_INET6];
        if (own[0].family || own[1].family)
                return own[own[0].family == 0];
        if (l->family == AF_INET)
                loopback.v4.s_addr = htonl(INADDR_LOOPBACK);
        else
                loopback.v6 = in6addr_loopback;
        return loopback;
}

void rootless_listener_target(const struct rootless_forwarder *f, const struct rootless_listener *l,
                              union rootless_sockaddr *ret, enum rootless_socket_kind *ret_kind) {
        struct nd_netlink_address address = target_address(f, l);
        bool v6 = address.family == AF_INET6;

        rootless_sockaddr_make(&address, l->target_port, ret);
        *ret_kind = l->stream ? (v6 ? SOCKET_TCP6 : SOCKET_TCP4) : (v6 ? SOCKET_UDP6 : SOCKET_UDP4);
}

static void listener_free(struct rootless_listener *l) {
        nd_close_fd(&l->fd);
        rootless_vxlan_filter_free(l->filter);
        free(l->spec);
        free(l);
}

/* Frees closed listeners whose last relay or flow is gone. */
static void sweep_listeners(struct rootless_forwarder *f) {
        for (struct rootless_listener **at = &f->listeners; *at;) {
                struct rootless_listener *l = *at;

                if (!l->closed || l->users > 0) {
                        at = &l->next;
                        continue;
                }
                *at = l->next;
                listener_free(l);
        }
}

void rootless_listener_unref(struct rootless_listener *l) {
        nd_assert(l->users > 0);
        l->users--;
}

static void on_listener(struct rootless_forwarder *f, struct rootless_watch *watch, [[maybe_unused]] uint32_t events) {
        struct rootless_listener *l = (struct rootless_listener *) watch;

        if (l->closed)
                return;
        if (l->stream)
                rootless_relay_accept(f, l);
        else
                rootless_flows_receive(f, l);
}

/* ---- requests of a controller ---- */

static struct nd_error *parse_listener(const struct rootless_control *message, struct rootless_listener *ret) {
        const char *id = rootless_control_get(message, "id"), *type = rootless_control_get(message, "type"),
                   *family = rootless_control_get(message, "family"), *target = rootless_control_get(message, "target"),
                   *port = rootless_control_get(message, "port"), *spec = rootless_control_get(message, "spec");
        uint64_t number;

        if (!id || nd_text_parse_u64(id, UINT32_MAX, &ret->id) < 0 || !spec || message->descriptor_count != 1)
                return nd_error_new(ND_INVALID, 0, "invalid listen request: needs an id, a spec and a socket");
        if (!type || !family || (!nd_streq(type, "tcp") && !nd_streq(type, "udp")))
                return nd_error_new(ND_INVALID, 0, "invalid listen request: type must be tcp or udp");
        if (!port || nd_text_parse_u64(port, UINT16_MAX, &number) < 0 || number == 0)
                return nd_error_new(ND_INVALID, 0, "invalid target port '%s'", port ? port : "");
        if (target && nd_netlink_address_parse(target, &ret->target) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid target address '%s'", target);
        ret->target_port = (uint16_t) number;
        ret->stream = nd_streq(type, "tcp");
        ret->family = nd_streq(family, "6") ? AF_INET6 : AF_INET;
        return nullptr;
}

/* With the first port, not at the start: most nodes publish none. */
static void warn_of_addresses(struct rootless_forwarder *f) {
        if (f->pool.kept || f->warned)
                return;
        f->warned = true;
        nd_log(ND_LOG_WARNING, "cannot keep client addresses: servers in the node see the node's address",
               nd_field("node", f->name), nd_field("why", f->pool.why ? f->pool.why : "?"));
}

static struct nd_error *on_listen(struct rootless_forwarder *f, struct rootless_control *message,
                                  [[maybe_unused]] struct nd_text *answer) {
        struct rootless_listener parsed = {.watch = {.ready = on_listener}, .fd = -EBADF}, *l;
        const char *filter = rootless_control_get(message, "filter");
        union rootless_sockaddr target;
        enum rootless_socket_kind kind;
        size_t count = 0;
        struct nd_error *error;

        for (const struct rootless_listener *other = f->listeners; other; other = other->next)
                count++;
        if (count >= LISTENERS)
                return nd_error_new(ND_EXHAUSTED, 0, "limit of %d listening sockets reached", LISTENERS);
        nd_try(parse_listener(message, &parsed));
        if (filter)
                nd_try(rootless_vxlan_filter_parse(filter, &parsed.filter));
        l = nd_new(struct rootless_listener);
        *l = parsed;
        l->fd = nd_take_fd(message->descriptors[0]);
        l->spec = nd_strdup(rootless_control_get(message, "spec"));
        error = rootless_forwarder_watch(f, l->fd, EPOLLIN, &l->watch);
        if (error) {
                listener_free(l);
                return error;
        }
        l->next = f->listeners;
        f->listeners = l;
        rootless_listener_target(f, l, &target, &kind);
        f->pool.used[kind] = true;
        warn_of_addresses(f);
        return nullptr;
}

static struct nd_error *on_close(struct rootless_forwarder *f, struct rootless_control *message,
                                 [[maybe_unused]] struct nd_text *answer) {
        const char *text = rootless_control_get(message, "id");
        uint64_t id;

        if (!text || nd_text_parse_u64(text, UINT32_MAX, &id) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid close request: no id");
        for (struct rootless_listener *l = f->listeners; l; l = l->next)
                if (l->id == id && !l->closed) {
                        rootless_forwarder_unwatch(f, &l->fd);
                        l->closed = true;
                        if (!l->stream)
                                rootless_flows_close(f, l);
                }
        return nullptr;
}

static void add_number(struct nd_text *text, const char *key, uint64_t value) {
        nd_autofree char *number = nd_format("%llu", (unsigned long long) value);

        rootless_control_add(text, key, number);
}

static void add_listener(struct nd_text *answer, const struct rootless_listener *l) {
        add_number(answer, "id", l->id);
        rootless_control_add(answer, "spec", l->spec);
        rootless_control_add(answer, "family", l->family == AF_INET6 ? "6" : "4");
        add_number(answer, "connections", l->connections);
        add_number(answer, "active", l->users);
        add_number(answer, "refused", l->refused);
        add_number(answer, "in", l->bytes_in);
        add_number(answer, "out", l->bytes_out);
}

/* Adds the descriptors to the reply, in order. */
static struct nd_error *on_list(struct rootless_forwarder *f, struct rootless_control *message, struct nd_text *answer) {
        const char *from_text = rootless_control_get(message, "from");
        uint64_t from = 0, at = 0;

        if (from_text && nd_text_parse_u64(from_text, UINT32_MAX, &from) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid list position '%s'", from_text);
        rootless_control_add(answer, "kept", f->pool.kept ? "1" : "0");
        if (f->pool.why)
                rootless_control_add(answer, "why", f->pool.why);
        add_number(answer, "waits", f->exhausted);
        for (const struct rootless_listener *l = f->listeners; l; l = l->next) {
                if (l->closed || at++ < from)
                        continue;
                if (message->descriptor_count == LISTED) {
                        add_number(answer, "next", at - 1);
                        break;
                }
                add_listener(answer, l);
                message->descriptors[message->descriptor_count++] = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
        }
        return nullptr;
}

static const struct {
        const char *verb;
        struct nd_error *(*handle)(struct rootless_forwarder *f, struct rootless_control *message, struct nd_text *answer);
} handlers[] = {{"listen", on_listen}, {"close", on_close}, {"list", on_list}};

/* Afterwards the message's descriptors are those of the reply: only a list has some. */
static struct nd_error *handle(struct rootless_forwarder *f, struct rootless_control *message, struct nd_text *answer) {
        for (size_t i = 0; i < nd_count_of(handlers); i++)
                if (nd_streq(message->verb, handlers[i].verb)) {
                        if (nd_streq(message->verb, "list") && message->descriptor_count > 0)
                                return nd_error_new(ND_INVALID, 0, "invalid list request: descriptors are not allowed");
                        return handlers[i].handle(f, message, answer);
                }
        return nd_error_new(ND_UNIMPLEMENTED, 0,
                            "protocol mismatch: unknown request '%s'; forwarder is older than this client", message->verb);
}

static void on_message(struct rootless_forwarder *f, struct rootless_watch *watch, [[maybe_unused]] uint32_t events) {
        struct controller *c = (struct controller *) watch;
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autoerror struct nd_error *error = nullptr, *unsent = nullptr;
        nd_autotext struct nd_text answer = CONTROL_TEXT;

        if (!c->used)
                return;
        error = rootless_control_receive(c->fd, 1, &message);
        if (nd_error_code(error) == ND_CANCELLED) {
                rootless_forwarder_unwatch(f, &c->fd);
                c->used = false;
                return;
        }
        rootless_control_begin(&answer, "done");
        if (!error)
                error = handle(f, &message, &answer);
        if (error) {
                nd_text_done(&answer);
                answer = CONTROL_TEXT;
                rootless_control_add_error(&answer, error);
        }
        unsent = rootless_control_send(c->fd, &answer, message.descriptors,
                                       error || !nd_streq(message.verb, "list") ? 0 : message.descriptor_count);
        if (unsent) {
                rootless_forwarder_unwatch(f, &c->fd);
                c->used = false;
        }
        rootless_socket_pool_refill(f);
}

static void on_controller(struct rootless_forwarder *f, [[maybe_unused]] struct rootless_watch *watch,
                          [[maybe_unused]] uint32_t events) {
        static struct controller controllers[CONTROLLERS];
        nd_autoclose int fd = accept4(f->control_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        for (size_t i = 0; i < CONTROLLERS; i++)
                if (!controllers[i].used) {
                        controllers[i] = (struct controller) {.watch = {.ready = on_message}, .fd = fd};
                        nd_autoerror struct nd_error *error = rootless_forwarder_watch(f, fd, EPOLLIN, &controllers[i].watch);
                        controllers[i].used = !error;
                        if (!error)
                                (void) nd_take_fd(fd);
                        return;
                }
}

/* ---- the loop ---- */

static int epoll_timeout_ms(const struct rootless_forwarder *f) {
        if (f->relays_pending)
                return 0;
        if (f->paused_us > 0 || (f->pool.stale && !f->pool.asked))
                return (int) (resume_delay_us / ND_MS_US);
        if (rootless_flows_any(f))
                return (int) (expire_interval_us / ND_MS_US);
        return f->watchdog.fd >= 0 ? (int) (f->watchdog.every_us / ND_MS_US) : -1;
}

static void run_once(struct rootless_forwarder *f) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(f->epoll, events, EVENTS, epoll_timeout_ms(f));

        f->now_us = nd_clock_us();
        rootless_watchdog_feed(&f->watchdog, f->now_us);
        for (int i = 0; i < n; i++) {
                struct rootless_watch *watch = events[i].data.ptr;

                watch->ready(f, watch, events[i].events);
        }
        rootless_relay_continue(f);
        rootless_relay_free_closed(f);
        if (f->paused_us > 0 && f->now_us - f->paused_us >= resume_delay_us)
                rootless_listener_resume_all(f);
        rootless_flows_expire(f);
        rootless_socket_pool_refill(f);
        sweep_listeners(f);
}

static void raise_limit(struct rootless_forwarder *f) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
        (void) getrlimit(RLIMIT_NOFILE, &limit);
        f->relay_most =
                limit.rlim_cur > (rlim_t) 2 * RESERVE ? (size_t) (limit.rlim_cur - RESERVE) / 2 : (size_t) limit.rlim_cur / 4;
}

static struct nd_error *listen_for_controllers(struct rootless_forwarder *f, const struct rootless_node *node) {
        nd_autofree char *path = nd_format("%s/forward.sock", node->path);
        struct sockaddr_un address;

        nd_try(nd_unix_address(path, &address));
        /* of a dead forwarder: we hold the lock */
        (void) nd_sys->unlinkat(node->fd, "forward.sock", 0);
        f->control_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (f->control_fd < 0 || bind(f->control_fd, (struct sockaddr *) &address, sizeof address) < 0 ||
            listen(f->control_fd, BACKLOG) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen at '%s'", path);
        f->control_watch.ready = on_controller;
        return rootless_forwarder_watch(f, f->control_fd, EPOLLIN, &f->control_watch);
}

/* Before the confinement, which denies opening sockets. */
static void report(const struct rootless_forwarder *f) {
        nd_autofree char *status = nd_format("ready: servers in the node see %s%s%s",
                                             f->pool.kept ? "the addresses of clients" : "the node's address instead of clients'",
                                             f->pool.kept ? "" : ": ", f->pool.kept ? "" : f->pool.why ?: "unknown reason");

        nd_notify_status(status);
}

static struct nd_error *prepare(struct rootless_forwarder *f, const struct rootless_node *node) {
        nd_autoclose int init_fd = -EBADF;

        (void) signal(SIGPIPE, SIG_IGN); /* splice() to a reset connection returns an error, too */
        nd_try(rootless_node_connect(node, &init_fd));
        raise_limit(f);
        f->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (f->epoll < 0)
                return nd_error_new(ND_INTERNAL, errno, "create an epoll instance");
        f->flows = rootless_flows_new();
        f->buffer = nd_malloc(FORWARDER_BUFFER_BYTES);
        nd_try(rootless_socket_pool_open(f, nd_take_fd(init_fd)));
        nd_try(listen_for_controllers(f, node));
        rootless_watchdog_open(&f->watchdog);
        report(f);
        return rootless_confine_forwarder();
}

static void forwarder_done(struct rootless_forwarder *f) {
        rootless_flows_free(f);
        rootless_relay_free_closed(f);
        for (struct rootless_listener *l = f->listeners, *next; l; l = next) {
                next = l->next;
                listener_free(l);
        }
        for (size_t i = 0; i < f->pipe_count; i++) {
                nd_close_fd(&f->pipes[i][0]);
                nd_close_fd(&f->pipes[i][1]);
        }
        rootless_socket_pool_done(&f->pool);
        rootless_watchdog_done(&f->watchdog);
        nd_close_fd(&f->control_fd);
        nd_close_fd(&f->epoll);
        free(f->buffer);
}

struct nd_error *rootless_forwarder_run(const char *name) {
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_autoclose int lock = -EBADF;
        nd_cleanup(forwarder_done) struct rootless_forwarder f = {.name = name,
                                                                  .epoll = -EBADF,
                                                                  .control_fd = -EBADF,
                                                                  .watchdog = WATCHDOG_NONE,
                                                                  .pool = {.fd = -EBADF, .address_fd = -EBADF}};

        nd_try(rootless_node_open(name, false, &node));
        nd_try(rootless_node_lock_service(&node, "forward.lock", &lock));
        nd_try(prepare(&f, &node));
        while (!f.over)
                run_once(&f);
        return nullptr;
}
