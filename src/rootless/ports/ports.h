/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h - published ports: their text and JSON forms, and the file that stores them
 *
 *      text    [ADDRESS:]PORT:[ADDRESS:]PORT[/PROTOCOL], RootlessKit's syntax; IPv6 addresses in
 *      brackets; "80" is "80:80/tcp"
 *      JSON    {"proto": "tcp", "parentIP": "", "parentPort": 8080, "childIP": "", "childPort":
 *      80}, RootlessKit's
 *      file    {"next": 3, "ports": [{"id": 1, "spec": {...}}, ...]}
 *
 * "parent" is the host, "child" the node. Only load, save and the last two functions do I/O.
 *
 * A port belongs to the user, or to a program that keeps a list of its own, such as the controller
 * for Services; then "owner" is its name, and "object" says what the port is published for. Owned
 * ports are in a file of their own in the node's runtime directory: they end with the node. A port
 * of VXLAN has a filter, too. */
#pragma once

#include "base/json.h"
#include "sys/netlink.h"

enum {
        PORTS_MAX = 4096,              /* more than the whole range of node ports */
        PORTS_OWNED_MAX = 2048,        /* of these, ports of one owner */
        PORTS_BYTES = 4 * 1024 * 1024, /* size limit of a file */
        PORT_TEXT = 2 * ND_ADDRESS_TEXT + 32,
        PORT_OWNER_TEXT = 33,   /* with the terminator */
        PORT_OBJECT_TEXT = 353, /* "Pod NAMESPACE/NAME" */
};
#define PORTS_FILE "ports.json"
#define PORTS_OWNED_FILE "owned-ports.json"

struct rootless_port_spec {
        bool stream;                      /* TCP, else UDP */
        int only;                         /* AF_INET or AF_INET6 (tcp4, udp6, ...); 0 = both */
        struct nd_netlink_address parent; /* family 0 = all host addresses */
        uint16_t parent_port;
        struct nd_netlink_address child; /* family 0 = the node's address */
        uint16_t child_port;
};

struct rootless_port {
        uint64_t id;
        struct rootless_port_spec spec;
        int fds[2];     /* listening sockets, IPv4 and IPv6; -EBADF = none */
        bool served[2]; /* passed to the forwarder */
        char *why;      /* why it cannot be listened on; nullptr = it is */
        char *owner;    /* the program whose list it is on; nullptr = the user */
        char *object;   /* what the owner publishes it for */
        /* Which datagrams are accepted (vxlan-filter.h); nullptr = all. Another filter is another
         * port, with an ID of its own. */
        char *filter;
        uint64_t retry_us; /* of an owner: do not try to listen before */
        uint64_t connections, active, refused, bytes_in, bytes_out;
};
struct rootless_ports {
        struct rootless_port *items;
        size_t count;
        size_t capacity;
};

void rootless_port_done(struct rootless_port *port);
void rootless_ports_done(struct rootless_ports *ports);

[[nodiscard]] struct nd_error *rootless_port_parse(const char *text, struct rootless_port_spec *ret);
const char *rootless_port_format(const struct rootless_port_spec *spec, char buffer[static PORT_TEXT]);
const char *rootless_port_protocol(const struct rootless_port_spec *spec); /* "tcp", "udp6" */
[[nodiscard]] struct nd_error *rootless_port_read_json(yyjson_val *object, struct rootless_port_spec *ret);
void rootless_port_write_json(struct nd_json_out *out, const char *key, const struct rootless_port_spec *spec);
[[nodiscard]] bool rootless_port_equal(const struct rootless_port_spec *a, const struct rootless_port_spec *b);
/* Whether both would listen at the same port of an address. */
[[nodiscard]] bool rootless_port_overlaps(const struct rootless_port_spec *a, const struct rootless_port_spec *b);
/* Lower case letters, digits and '-'. */
[[nodiscard]] bool rootless_port_owner_valid(const char *owner);
/* Reads "object" of an entry: a printable string, or none. */
[[nodiscard]] struct nd_error *rootless_port_read_object(yyjson_val *entry, char **ret);
/* Reads "filter" of an entry: a valid one, or none. */
[[nodiscard]] struct nd_error *rootless_port_read_filter(yyjson_val *entry, char **ret);

[[nodiscard]] struct nd_error *rootless_ports_parse(const char *text, size_t length, struct rootless_ports *ret,
                                                    uint64_t *ret_next);
/* The user's ports, or those of owners. */
[[nodiscard]] char *rootless_ports_format(const struct rootless_ports *ports, bool owned, uint64_t next);

/* Adds the ports of a file; a missing one is empty. *next is at least the number after the highest
 * ID. */
[[nodiscard]] struct nd_error *rootless_ports_load(int dir_fd, const char *file, struct rootless_ports *ports, uint64_t *next);
[[nodiscard]] struct nd_error *rootless_ports_save(int dir_fd, const char *file, const struct rootless_ports *ports,
                                                   uint64_t next);

/* The lowest port that this process may listen on. */
uint16_t rootless_port_lowest(void);

/* Opens the listening socket of one family; -EBADF without an error if the port does not use that
 * family. */
[[nodiscard]] struct nd_error *rootless_port_listen(const struct rootless_port_spec *spec, int family, int *ret_fd);
