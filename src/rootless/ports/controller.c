/* SPDX-License-Identifier: Apache-2.0 */
/* controller.c - see controller.h
 *
 * Theory of operation
 *   The controller creates the listening sockets and passes them to the forwarder (forwarder.c),
 *   which serves them. Either may die: the controller keeps the sockets, and a new controller takes
 *   them from the forwarder. sync_ports() makes the forwarder's list equal to ours at start, when
 *   the forwarder comes back and after each change.
 *   A port that cannot be listened on (another process uses it) stays in the list with the reason,
 *   and is retried every @listen_retry_us.
 *   Ports of an owner other than the user (ports.h) give way: none listens where a port of the
 *   user is listed or another process listens, and such a port is retried only every
 *   @owned_retry_us, so that a program of the user that restarts gets its port back.
 *   The list is a file in the node's data directory, or in its runtime directory if it has none;
 *   ports of owners are always in the latter. It is written before a change is acknowledged. On
 *   SIGTERM nothing is closed: the forwarder keeps serving.
 * Invariant  the file lists the same ports as @ports. */
#include "rootless/ports/controller.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/unix.h"
#include "rootless/core/control.h"
#include "rootless/core/node.h"
#include "rootless/network/discover.h"
#include "rootless/ports/api-server.h"
#include "sys/file.h"
#include "sys/limits.h"
#include "sys/notify.h"

enum {
        FAMILIES = 2,
};

static constexpr uint64_t call_timeout_us = 5 * ND_SECOND_US;
/* retry until the forwarder is there */
static constexpr uint64_t reconnect_delay_us = 20 * ND_MS_US;
static constexpr uint64_t listen_retry_us = ND_SECOND_US;
static constexpr uint64_t owned_retry_us = 30 * ND_SECOND_US;

struct id_list {
        uint64_t *items;
        size_t count;
        size_t capacity;
};

struct controller {
        sd_event *loop;
        struct rootless_node node;
        struct rootless_node_record record;
        int pidfd, lock, data;
        struct rootless_ports ports;
        uint64_t next;
        int forwarder; /* -EBADF while not connected */
        sd_event_source *forwarder_gone;
        sd_event_source *retry;
        bool kept;    /* as reported by the forwarder */
        char *status; /* of the unit, as last sent */
        struct rootless_api_server *server;
};

static int family_of(int slot) {
        return slot == 0 ? AF_INET : AF_INET6;
}

/* ---- the forwarder ---- */

static struct nd_error *send_listen(struct controller *c, struct rootless_port *port, int slot) {
        nd_autofree char *id = nd_format("%llu", (unsigned long long) port->id),
                         *child_port = nd_format("%u", port->spec.child_port);
        nd_autotext struct nd_text text = CONTROL_TEXT;
        char spec[PORT_TEXT], child[ND_ADDRESS_TEXT];

        rootless_control_begin(&text, "listen");
        rootless_control_add(&text, "id", id);
        rootless_control_add(&text, "spec", rootless_port_format(&port->spec, spec));
        rootless_control_add(&text, "type", port->spec.stream ? "tcp" : "udp");
        rootless_control_add(&text, "family", slot == 0 ? "4" : "6");
        rootless_control_add(&text, "port", child_port);
        if (port->filter)
                rootless_control_add(&text, "filter", port->filter);
        if (port->spec.child.family)
                rootless_control_add(&text, "target", nd_netlink_address_text(&port->spec.child, child));
        nd_try(rootless_control_call(c->forwarder, &text, &port->fds[slot], 1, call_timeout_us, nullptr));
        port->served[slot] = true;
        return nullptr;
}

static struct nd_error *send_close(struct controller *c, uint64_t id) {
        nd_autofree char *number = nd_format("%llu", (unsigned long long) id);
        nd_autotext struct nd_text text = CONTROL_TEXT;

        rootless_control_begin(&text, "close");
        rootless_control_add(&text, "id", number);
        return rootless_control_call(c->forwarder, &text, nullptr, 0, call_timeout_us, nullptr);
}

static struct rootless_port *find_port(struct controller *c, uint64_t id) {
        nd_vector_each (port, &c->ports) {
                if (port->id == id)
                        return port;
        }
        return nullptr;
}

/* One listening socket of the forwarder. */
struct listed {
        uint64_t id;
        char spec[PORT_TEXT];
        int slot;
        uint64_t connections, active, refused, in, out;
};

static void read_number(const struct rootless_control_field *field, const char *key, uint64_t *ret) {
        if (nd_streq(field->key, key))
                (void) !nd_text_parse_u64(field->value, UINT64_MAX, ret);
}

/* Takes over from the forwarder: its sockets where we have none (made by an earlier controller),
 * and counters. A port that we do not list was being removed. */
static void take_listed(struct controller *c, const struct listed *listed, int *fd, struct id_list *unknown) {
        struct rootless_port *port = find_port(c, listed->id);
        char text[PORT_TEXT];

        if (!port || !nd_streq(rootless_port_format(&port->spec, text), listed->spec)) {
                nd_vector_push(unknown, listed->id);
                return;
        }
        if (port->fds[listed->slot] < 0)
                port->fds[listed->slot] = nd_take_fd(*fd);
        port->served[listed->slot] = true;
        port->connections += listed->connections;
        port->active += listed->active;
        port->refused += listed->refused;
        port->bytes_in += listed->in;
        port->bytes_out += listed->out;
}

static void read_listed(struct controller *c, struct rootless_control *answer, struct id_list *unknown, uint64_t *ret_next) {
        struct listed listed = {};
        size_t seen = 0;

        *ret_next = 0;
        for (size_t i = 0; i <= answer->fields.count; i++) {
                const struct rootless_control_field *field = i < answer->fields.count ? &answer->fields.items[i] : nullptr;

                /* An ID starts the next entry; it or the end of the list completes the current
                 * one. */
                if (listed.id > 0 && (!field || nd_streq(field->key, "id") || nd_streq(field->key, "next"))) {
                        if (seen < answer->descriptor_count)
                                take_listed(c, &listed, &answer->descriptors[seen++], unknown);
                        listed = (struct listed) {};
                }
                if (!field)
                        break;
                if (nd_streq(field->key, "kept"))
                        c->kept = nd_streq(field->value, "1");
                if (nd_streq(field->key, "spec"))
                        (void) snprintf(listed.spec, sizeof listed.spec, "%s", field->value);
                if (nd_streq(field->key, "family"))
                        listed.slot = nd_streq(field->value, "6");
                read_number(field, "id", &listed.id);
                read_number(field, "next", ret_next);
                read_number(field, "connections", &listed.connections);
                read_number(field, "active", &listed.active);
                read_number(field, "refused", &listed.refused);
                read_number(field, "in", &listed.in);
                read_number(field, "out", &listed.out);
        }
}

/* Fetches the forwarder's sockets and counters. */
static struct nd_error *fetch_list(struct controller *c, struct id_list *unknown) {
        uint64_t from = 0;

        nd_vector_each (port, &c->ports) {
                port->served[0] = port->served[1] = false;
                port->connections = port->active = port->refused = port->bytes_in = port->bytes_out = 0;
        }
        do {
                nd_cleanup(rootless_control_done) struct rootless_control answer = {};
                nd_autofree char *number = nd_format("%llu", (unsigned long long) from);
                nd_autotext struct nd_text text = CONTROL_TEXT;

                rootless_control_begin(&text, "list");
                rootless_control_add(&text, "from", number);
                nd_try(rootless_control_call(c->forwarder, &text, nullptr, 0, call_timeout_us, &answer));
                read_listed(c, &answer, unknown, &from);
        } while (from > 0);
        return nullptr;
}

static struct nd_error *reconcile(struct controller *c) {
        struct id_list unknown = {};
        struct nd_error *error = fetch_list(c, &unknown);

        for (size_t i = 0; !error && i < unknown.count; i++)
                error = send_close(c, unknown.items[i]);
        nd_vector_done(&unknown);
        nd_try(error);
        nd_vector_each (port, &c->ports) {
                for (int slot = 0; slot < FAMILIES; slot++)
                        if (port->fds[slot] >= 0 && !port->served[slot])
                                nd_try(send_listen(c, port, slot));
        }
        return nullptr;
}

static void disconnect_forwarder(struct controller *c) {
        sd_event_source_disable_unref(c->forwarder_gone);
        c->forwarder_gone = nullptr;
        nd_close_fd(&c->forwarder);
}

static void schedule_sync(struct controller *c, uint64_t usec);

static int on_forwarder_gone([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd,
                             [[maybe_unused]] uint32_t events, void *userdata) {
        struct controller *c = userdata;

        disconnect_forwarder(c);
        schedule_sync(c, reconnect_delay_us);
        return 0;
}

static struct nd_error *connect_forwarder(struct controller *c) {
        nd_autofree char *path = nd_format("%s/forward.sock", c->node.path);
        struct sockaddr_un address;

        if (c->forwarder >= 0)
                return nullptr;
        nd_try(nd_unix_address(path, &address));
        c->forwarder = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (c->forwarder < 0 || connect(c->forwarder, (struct sockaddr *) &address, sizeof address) < 0 ||
            sd_event_add_io(c->loop, &c->forwarder_gone, c->forwarder, EPOLLIN, on_forwarder_gone, c) < 0)
                return nd_error_new(ND_UNAVAILABLE, errno, "connect to the forwarder at '%s'", path);
        return nullptr;
}

/* ---- listening ---- */

/* A port of the list that uses the same host port: for an owner's port every port of the user and
 * ports of owners that are open, for a port of the user the latter. */
static const struct rootless_port *find_overlap(const struct controller *c, const struct rootless_port *port) {
        nd_vector_each (other, &c->ports) {
                bool is_open = other->fds[0] >= 0 || other->fds[1] >= 0;

                if (other->id != port->id && rootless_port_overlaps(&other->spec, &port->spec) &&
                    (port->owner ? !other->owner || is_open : other->owner && is_open))
                        return other;
        }
        return nullptr;
}

static struct nd_error *check_overlap(const struct controller *c, const struct rootless_port *port) {
        char text[PORT_TEXT], other_text[PORT_TEXT];
        const struct rootless_port *other = find_overlap(c, port);
        unsigned long long id = other ? other->id : 0;

        if (!other)
                return nullptr;
        (void) rootless_port_format(&port->spec, text);
        (void) rootless_port_format(&other->spec, other_text);
        if (!other->owner)
                return nd_error_new(ND_EXISTS, 0,
                                    "publish %s: the user has published %s ('nodens-rootless ports remove %llu' frees it)",
                                    text, other_text, id);
        return nd_error_new(ND_EXISTS, 0, "publish %s: %s has published %s for %s; choose another port", text, other->owner,
                            other_text, other->object ? other->object : "an object");
}

static struct nd_error *open_port(struct controller *c, struct rootless_port *port, int slot) {
        if (port->owner)
                nd_try(check_overlap(c, port));
        return rootless_port_listen(&port->spec, family_of(slot), &port->fds[slot]);
}

static void log_failure(const struct controller *c, const struct rootless_port *port, const struct nd_error *error) {
        char text[PORT_TEXT];
        nd_autofree char *name = port->object ? nd_format("%s of %s", rootless_port_format(&port->spec, text), port->object)
                                              : nd_strdup(rootless_port_format(&port->spec, text));

        nd_log(ND_LOG_WARNING, "cannot publish port; retrying", nd_field("node", c->node.name), nd_field("port", name),
               nd_field("error", nd_error_text(error)));
}

static void port_listen(struct controller *c, struct rootless_port *port) {
        if (port->owner && nd_clock_us() < port->retry_us)
                return;
        port->retry_us = nd_clock_us() + owned_retry_us;
        for (int slot = 0; slot < FAMILIES; slot++) {
                nd_autoerror struct nd_error *error = nullptr;

                if (port->fds[slot] >= 0)
                        continue;
                error = open_port(c, port, slot);
                if (error) {
                        if (!port->why)
                                log_failure(c, port, error);
                        nd_strset(&port->why, nd_error_text(error));
                        return;
                }
        }
        free(nd_take_ptr(port->why));
}

/* Published ports, and the first one that cannot be listened on. */
static char *describe(const struct controller *c) {
        const struct rootless_port *first = nullptr;
        size_t failed = 0;
        char text[PORT_TEXT];

        nd_vector_each (port, &c->ports) {
                failed += port->why != nullptr;
                first = first ?: port->why ? port : nullptr;
        }
        if (!first)
                return nd_format("ready: %zu published %s", c->ports.count, c->ports.count == 1 ? "port" : "ports");
        return nd_format("%zu of %zu published ports cannot be opened: %s: %s", failed, c->ports.count,
                         rootless_port_format(&first->spec, text), first->why);
}

static void report(struct controller *c) {
        nd_autofree char *status = describe(c);

        if (c->status && nd_streq(c->status, status))
                return;
        nd_strset(&c->status, status);
        nd_notify_status(status);
}

/* Connects, listens and reconciles as needed; failures are retried later. */
static void sync_ports(struct controller *c) {
        nd_autoerror struct nd_error *error = connect_forwarder(c);
        bool waiting = false;

        if (!error)
                error = reconcile(c);
        nd_vector_each (port, &c->ports) {
                if (port->fds[0] < 0 || port->fds[1] < 0)
                        port_listen(c, port);
                waiting = waiting || port->why;
        }
        if (!error)
                error = reconcile(c);
        if (error)
                disconnect_forwarder(c);
        report(c);
        if (error || waiting)
                schedule_sync(c, error ? reconnect_delay_us : listen_retry_us);
}

static int on_retry([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        sync_ports(userdata);
        return 0;
}

static void schedule_sync(struct controller *c, uint64_t usec) {
        sd_event_source_disable_unref(c->retry);
        c->retry = nullptr;
        (void) sd_event_add_time_relative(c->loop, &c->retry, CLOCK_MONOTONIC, usec, 1000, on_retry, c);
}

/* ---- API requests ---- */

static void on_info(void *userdata, struct nd_json_out *out) {
        static const char *const protocols[] = {"tcp", "tcp4", "tcp6", "udp", "udp4", "udp6"};
        struct controller *c = userdata;
        nd_autofree char *state = nd_format("%s/api", c->node.path), *resolv = nullptr;
        enum rootless_net_driver driver;
        struct rootless_netplan plan = {};
        char text[ND_ADDRESS_TEXT];
        nd_autoerror struct nd_error *error = rootless_net_driver_parse(c->record.net, &driver);

        if (!error)
                error = rootless_network_discover(c->node.name, driver, c->record.mtu, &plan, &resolv);
        nd_json_string(out, "apiVersion", "1.1.2");
        nd_json_string(out, "version", "nodens");
        nd_json_string(out, "stateDir", state);
        nd_json_number(out, "childPID", (uint64_t) c->record.pid);
        nd_json_open(out, "networkDriver", '{');
        nd_json_string(out, "driver", c->record.net);
        if (!error && plan.dns.family) {
                nd_json_open(out, "dns", '[');
                nd_json_string(out, nullptr, nd_netlink_address_text(&plan.dns, text));
                nd_json_close(out, ']');
        }
        if (!error && plan.addresses[0].family)
                nd_json_string(out, "childIP", nd_netlink_address_text(&plan.addresses[0], text));
        nd_json_bool(out, "dynamicChildIP", true);
        nd_json_bool(out, "ipv6", !error && plan.addresses[1].family != 0);
        nd_json_close(out, '}');
        nd_json_open(out, "portDriver", '{');
        nd_json_string(out, "driver", "nodens");
        nd_json_open(out, "protos", '[');
        for (size_t i = 0; i < nd_count_of(protocols); i++)
                nd_json_string(out, nullptr, protocols[i]);
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static const struct rootless_ports *on_list(void *userdata, bool *ret_kept) {
        struct controller *c = userdata;

        sync_ports(c);
        *ret_kept = c->kept;
        return &c->ports;
}

static struct nd_error *save(struct controller *c) {
        return rootless_ports_save(c->data >= 0 ? c->data : c->node.fd, PORTS_FILE, &c->ports, c->next);
}

static struct nd_error *save_owned(struct controller *c) {
        return rootless_ports_save(c->node.fd, PORTS_OWNED_FILE, &c->ports, c->next);
}

static void drop_last(struct controller *c) {
        rootless_port_done(&c->ports.items[--c->ports.count]);
}

static struct nd_error *on_add(void *userdata, const struct rootless_port_spec *spec, const struct rootless_port **ret) {
        struct controller *c = userdata;
        struct rootless_port port = {.id = c->next, .spec = *spec, .fds = {-EBADF, -EBADF}};
        struct nd_error *error;
        char text[PORT_TEXT];

        nd_vector_each (other, &c->ports) {
                if (rootless_port_equal(&other->spec, spec))
                        return nd_error_new(ND_EXISTS, EEXIST, "%s is already published with ID %llu",
                                            rootless_port_format(spec, text), (unsigned long long) other->id);
        }
        if (c->ports.count == PORTS_MAX)
                return nd_error_new(ND_EXHAUSTED, 0, "limit of %d published ports reached", PORTS_MAX);
        nd_try(check_overlap(c, &port));
        for (int slot = 0; slot < FAMILIES; slot++) {
                error = rootless_port_listen(spec, family_of(slot), &port.fds[slot]);
                if (error) {
                        rootless_port_done(&port);
                        return error;
                }
        }
        nd_vector_push(&c->ports, port);
        c->next++;
        error = save(c);
        if (error) {
                drop_last(c);
                return error;
        }
        sync_ports(c);
        *ret = &c->ports.items[c->ports.count - 1];
        return nullptr;
}

static struct nd_error *on_remove(void *userdata, uint64_t id) {
        struct controller *c = userdata;
        struct rootless_port *port = find_port(c, id);
        bool owned = port && port->owner;

        if (!port)
                return nd_error_new(ND_NOT_FOUND, ENOENT, "no published port with ID %llu", (unsigned long long) id);
        rootless_port_done(port);
        c->ports.count--;
        memmove(port, port + 1, (size_t) (c->ports.items + c->ports.count - port) * sizeof *port);
        nd_try(owned ? save_owned(c) : save(c));
        sync_ports(c); /* the forwarder's socket is unknown now and gets closed */
        return nullptr;
}

/* ---- ports of an owner ---- */

/* Either may be nullptr. */
static bool same_text(const char *a, const char *b) {
        return a && b ? nd_streq(a, b) : a == b;
}

static struct rootless_port *find_equal(struct rootless_ports *ports, const char *owner, const struct rootless_port *wanted) {
        nd_vector_each (port, ports) {
                if (rootless_port_equal(&port->spec, &wanted->spec) && same_text(port->filter, wanted->filter) &&
                    (!owner || (port->owner && nd_streq(port->owner, owner))))
                        return port;
        }
        return nullptr;
}

/* Removes the owner's ports that are not wanted. */
static bool drop_unwanted(struct controller *c, const char *owner, struct rootless_ports *wanted) {
        size_t kept = 0, before = c->ports.count;

        for (size_t i = 0; i < before; i++) {
                struct rootless_port *port = &c->ports.items[i];

                if (port->owner && nd_streq(port->owner, owner) && !find_equal(wanted, nullptr, port))
                        rootless_port_done(port);
                else if (kept++ < i)
                        c->ports.items[kept - 1] = nd_take(*port, ((struct rootless_port) {.fds = {-EBADF, -EBADF}}));
        }
        c->ports.count = kept;
        return kept < before;
}

static bool add_wanted(struct controller *c, const char *owner, struct rootless_port *wanted) {
        struct rootless_port *port = find_equal(&c->ports, owner, wanted);
        bool is_new = !port, is_changed;

        if (is_new) {
                struct rootless_port added = {
                        .id = c->next++, .spec = wanted->spec, .owner = nd_strdup(owner), .fds = {-EBADF, -EBADF}};

                nd_vector_push(&c->ports, added);
                port = &c->ports.items[c->ports.count - 1];
                port->filter = nd_take_ptr(wanted->filter);
        }
        is_changed = is_new || !same_text(port->object, wanted->object);
        free(port->object);
        port->object = nd_take_ptr(wanted->object);
        return is_changed;
}

/* A port that is already published is not touched: its connections go on, and no client is
 * refused. */
static struct nd_error *on_replace(void *userdata, const char *owner, struct rootless_ports *wanted) {
        struct controller *c = userdata;
        bool changed = drop_unwanted(c, owner, wanted);

        nd_vector_each (port, wanted) {
                if (c->ports.count == PORTS_MAX && !find_equal(&c->ports, owner, port))
                        return nd_error_new(ND_EXHAUSTED, 0, "limit of %d published ports reached", PORTS_MAX);
                changed |= add_wanted(c, owner, port);
        }
        if (changed)
                nd_try(save_owned(c));
        return nullptr; /* the response lists the ports, which synchronizes them */
}

static uint16_t on_lowest([[maybe_unused]] void *userdata) {
        return rootless_port_lowest();
}

/* ---- the process ---- */

static int on_end([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                  void *userdata) {
        struct controller *c = userdata;

        return sd_event_exit(c->loop, 0);
}

static struct nd_error *open_all(struct controller *c, const char *name) {
        int r = sd_event_default(&c->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(nd_limits_raise()); /* a port has up to two sockets */
        nd_try(rootless_node_open(name, false, &c->node));
        nd_try(rootless_node_lock_service(&c->node, "api.lock", &c->lock));
        nd_try(rootless_node_open_init(&c->node, &c->record, &c->pidfd));
        if (c->record.data)
                nd_try(nd_dir_open(AT_FDCWD, c->record.data, &c->data));
        c->next = 1;
        nd_try(rootless_ports_load(c->data >= 0 ? c->data : c->node.fd, PORTS_FILE, &c->ports, &c->next));
        return rootless_ports_load(c->node.fd, PORTS_OWNED_FILE, &c->ports, &c->next);
}

static struct nd_error *serve_api(struct controller *c) {
        return rootless_api_server_new(c->loop, &c->node,
                                       &(struct rootless_api_backend) {.userdata = c,
                                                                       .info = on_info,
                                                                       .list = on_list,
                                                                       .add = on_add,
                                                                       .remove = on_remove,
                                                                       .replace = on_replace,
                                                                       .lowest = on_lowest},
                                       &c->server);
}

static struct nd_error *serve(struct controller *c, const char *name) {
        int r;

        nd_try(open_all(c, name));
        sync_ports(c);
        nd_try(serve_api(c));
        r = sd_event_add_io(c->loop, nullptr, c->pidfd, EPOLLIN, on_end, c);
        if (r >= 0)
                r = sd_event_set_signal_exit(c->loop, true);
        if (r >= 0)
                r = sd_event_set_watchdog(c->loop, true);
        if (r >= 0)
                nd_notify_ready(c->status);
        if (r >= 0)
                r = sd_event_loop(c->loop);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "serve the API") : nullptr;
}

static void controller_done(struct controller *c) {
        rootless_api_server_free(c->server);
        disconnect_forwarder(c);
        sd_event_source_disable_unref(c->retry);
        rootless_ports_done(&c->ports);
        free(c->status);
        nd_close_fd(&c->data);
        nd_close_fd(&c->lock);
        nd_close_fd(&c->pidfd);
        rootless_node_record_done(&c->record);
        rootless_node_done(&c->node);
        sd_event_unref(c->loop);
}

struct nd_error *rootless_port_controller_run(const char *name) {
        struct controller c = {.node = NODE_NONE, .pidfd = -EBADF, .lock = -EBADF, .data = -EBADF, .forwarder = -EBADF};
        struct nd_error *error = serve(&c, name);

        controller_done(&c);
        return error;
}
