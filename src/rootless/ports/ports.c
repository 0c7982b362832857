/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/ports/ports.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "rootless/network/vxlan-filter.h"
#include "sys/file.h"

enum { BACKLOG = 4096 };

void rootless_port_done(struct rootless_port *port) {
        nd_close_fd(&port->fds[0]);
        nd_close_fd(&port->fds[1]);
        free(port->why);
        free(port->owner);
        free(port->object);
        free(port->filter);
        *port = (struct rootless_port) {.fds = {-EBADF, -EBADF}};
}

void rootless_ports_done(struct rootless_ports *ports) {
        nd_vector_each (port, ports) {
                rootless_port_done(port);
        }
        nd_vector_done(ports);
}

/* ---- text ---- */

static const struct {
        const char *name;
        bool stream;
        int only;
} protocols[] = {{"tcp", true, 0},  {"tcp4", true, AF_INET},  {"tcp6", true, AF_INET6},
                 {"udp", false, 0}, {"udp4", false, AF_INET}, {"udp6", false, AF_INET6}};

static struct nd_error *set_protocol(const char *name, struct rootless_port_spec *spec) {
        for (size_t i = 0; i < nd_count_of(protocols); i++)
                if (nd_streq(name, protocols[i].name)) {
                        spec->stream = protocols[i].stream;
                        spec->only = protocols[i].only;
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown protocol '%.16s'; use tcp, tcp4, tcp6, udp, udp4 or udp6", name);
}

const char *rootless_port_protocol(const struct rootless_port_spec *spec) {
        for (size_t i = 0; i < nd_count_of(protocols); i++)
                if (spec->stream == protocols[i].stream && spec->only == protocols[i].only)
                        return protocols[i].name;
        return "?";
}

static struct nd_error *set_address(const char *text, const char *whose, struct nd_netlink_address *ret) {
        *ret = (struct nd_netlink_address) {};
        if (text[0] == '\0')
                return nullptr;
        if (strchr(text, '/') || nd_netlink_address_parse(text, ret) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid %s address '%.64s'", whose, text);
        return nullptr;
}

static struct nd_error *check(const struct rootless_port_spec *spec) {
        if (spec->parent_port == 0 || spec->child_port == 0)
                return nd_error_new(ND_INVALID, 0, "host and node ports must be 1 to 65535");
        if (spec->parent.family && spec->only && spec->parent.family != spec->only)
                return nd_error_new(ND_INVALID, 0, "the address does not match the protocol %s", rootless_port_protocol(spec));
        return nullptr;
}

static struct nd_error *set_port(const char *text, uint16_t *ret) {
        uint64_t number;

        if (nd_text_parse_u64(text, UINT16_MAX, &number) < 0 || number == 0)
                return nd_error_new(ND_INVALID, 0, "invalid port '%.16s'", text);
        *ret = (uint16_t) number;
        return nullptr;
}

/* Cuts off the part before the next ':'; an address in brackets is one part. */
static char *next_word(char **rest) {
        char *word = *rest, *end;

        if (!word)
                return nullptr;
        if (*word == '[') {
                end = strchr(word, ']');
                if (!end || (end[1] != ':' && end[1] != '\0'))
                        return nullptr;
                word++;
                *rest = end[1] == ':' ? end + 2 : nullptr;
                *end = '\0';
                return word;
        }
        end = strchr(word, ':');
        *rest = end ? end + 1 : nullptr;
        if (end)
                *end = '\0';
        return word;
}

static bool is_number(const char *word) {
        return word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
}

static struct nd_error *set_words(char *const *words, size_t count, struct rootless_port_spec *spec) {
        size_t at = 0;

        if (count > 1 && !is_number(words[0]))
                nd_try(set_address(words[at++], "host", &spec->parent));
        nd_try(set_port(words[at++], &spec->parent_port));
        spec->child_port = spec->parent_port;
        if (at + 1 < count)
                nd_try(set_address(words[at++], "node", &spec->child));
        if (at < count)
                nd_try(set_port(words[at++], &spec->child_port));
        return at == count ? nullptr : nd_error_new(ND_INVALID, 0, "too many parts");
}

struct nd_error *rootless_port_parse(const char *text, struct rootless_port_spec *ret) {
        enum { WORDS = 4, BYTES = 2 * INET6_ADDRSTRLEN + 32 };
        struct rootless_port_spec spec = {.stream = true};
        char copy[BYTES], *words[WORDS], *rest = copy, *slash;
        size_t count = 0;
        struct nd_error *error = nullptr;

        if (strlen(text) >= sizeof copy)
                return nd_error_new(ND_INVALID, 0, "port specification too long: '%.64s'", text);
        memcpy(copy, text, strlen(text) + 1);
        slash = strrchr(copy, '/');
        if (slash) {
                *slash = '\0';
                error = set_protocol(slash + 1, &spec);
        }
        while (!error && rest) {
                char *word = count < WORDS ? next_word(&rest) : nullptr;

                if (!word)
                        error = nd_error_new(ND_INVALID, 0, "too many parts or an unclosed bracket");
                else
                        words[count++] = word;
        }
        if (!error)
                error = set_words(words, count, &spec);
        if (!error)
                error = check(&spec);
        nd_try(nd_error_wrap(error, "invalid port '%s' (examples: 8080:80/tcp, 127.0.0.1:8080:10.0.2.100:80/udp)", text));
        *ret = spec;
        return nullptr;
}

static size_t add_address(char *buffer, size_t size, const struct nd_netlink_address *address) {
        char text[ND_ADDRESS_TEXT];

        if (address->family == 0)
                return 0;
        return (size_t) snprintf(buffer, size,
                                 address->family == AF_INET6 ? "[%s]:" : "%s:", nd_netlink_address_text(address, text));
}

const char *rootless_port_format(const struct rootless_port_spec *spec, char buffer[static PORT_TEXT]) {
        size_t at = add_address(buffer, PORT_TEXT, &spec->parent);

        at += (size_t) snprintf(buffer + at, PORT_TEXT - at, "%u:", spec->parent_port);
        at += add_address(buffer + at, PORT_TEXT - at, &spec->child);
        (void) snprintf(buffer + at, PORT_TEXT - at, "%u/%s", spec->child_port, rootless_port_protocol(spec));
        return buffer;
}

bool rootless_port_equal(const struct rootless_port_spec *a, const struct rootless_port_spec *b) {
        return a->stream == b->stream && a->only == b->only && a->parent_port == b->parent_port &&
               a->child_port == b->child_port && nd_netlink_address_equal(&a->parent, &b->parent) &&
               nd_netlink_address_equal(&a->child, &b->child);
}

static int family_of(const struct rootless_port_spec *spec) {
        return spec->parent.family ? spec->parent.family : spec->only;
}

static bool is_wildcard(const struct nd_netlink_address *address) {
        static const struct in6_addr none = {};

        return address->family == 0 || (address->family == AF_INET && address->v4.s_addr == 0) ||
               (address->family == AF_INET6 && memcmp(&address->v6, &none, sizeof none) == 0);
}

bool rootless_port_overlaps(const struct rootless_port_spec *a, const struct rootless_port_spec *b) {
        if (a->stream != b->stream || a->parent_port != b->parent_port)
                return false;
        if (family_of(a) && family_of(b) && family_of(a) != family_of(b))
                return false;
        return is_wildcard(&a->parent) || is_wildcard(&b->parent) || nd_netlink_address_equal(&a->parent, &b->parent);
}

bool rootless_port_owner_valid(const char *owner) {
        size_t length = strlen(owner);

        return length > 0 && length < PORT_OWNER_TEXT && strspn(owner, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

/* ---- JSON ---- */

static struct nd_error *read_text(yyjson_val *object, const char *key, const char **ret) {
        yyjson_val *value = yyjson_obj_get(object, key);

        *ret = "";
        if (!value || yyjson_is_null(value))
                return nullptr;
        if (!yyjson_is_str(value) || strlen(yyjson_get_str(value)) != yyjson_get_len(value))
                return nd_error_new(ND_INVALID, 0, "'%s' is not a string", key);
        *ret = yyjson_get_str(value);
        return nullptr;
}

static struct nd_error *read_port(yyjson_val *object, const char *key, uint16_t *ret) {
        yyjson_val *value = yyjson_obj_get(object, key);

        if (!yyjson_is_uint(value) || yyjson_get_uint(value) == 0 || yyjson_get_uint(value) > UINT16_MAX)
                return nd_error_new(ND_INVALID, 0, "'%s' must be a port number, 1 to 65535", key);
        *ret = (uint16_t) yyjson_get_uint(value);
        return nullptr;
}

struct nd_error *rootless_port_read_json(yyjson_val *object, struct rootless_port_spec *ret) {
        struct rootless_port_spec spec = {.stream = true};
        const char *protocol, *parent, *child;

        if (!yyjson_is_obj(object))
                return nd_error_new(ND_INVALID, 0, "port is not a JSON object");
        nd_try(read_text(object, "proto", &protocol));
        nd_try(read_text(object, "parentIP", &parent));
        nd_try(read_text(object, "childIP", &child));
        nd_try(set_protocol(protocol, &spec));
        nd_try(set_address(parent, "parentIP", &spec.parent));
        nd_try(set_address(child, "childIP", &spec.child));
        nd_try(read_port(object, "parentPort", &spec.parent_port));
        nd_try(read_port(object, "childPort", &spec.child_port));
        nd_try(check(&spec));
        *ret = spec;
        return nullptr;
}

void rootless_port_write_json(struct nd_json_out *out, const char *key, const struct rootless_port_spec *spec) {
        char text[ND_ADDRESS_TEXT];

        nd_json_open(out, key, '{');
        nd_json_string(out, "proto", rootless_port_protocol(spec));
        if (spec->parent.family)
                nd_json_string(out, "parentIP", nd_netlink_address_text(&spec->parent, text));
        nd_json_number(out, "parentPort", spec->parent_port);
        nd_json_number(out, "childPort", spec->child_port);
        if (spec->child.family)
                nd_json_string(out, "childIP", nd_netlink_address_text(&spec->child, text));
        nd_json_close(out, '}');
}

/* It is printed on terminals. */
struct nd_error *rootless_port_read_object(yyjson_val *entry, char **ret) {
        nd_autotext struct nd_text printable = ND_TEXT(PORT_OBJECT_TEXT - 1);
        const char *text;

        nd_try(read_text(entry, "object", &text));
        if (text[0] == '\0') {
                *ret = nullptr;
                return nullptr;
        }
        nd_text_add_printable(&printable, text, strlen(text));
        if (printable.overflow)
                return nd_error_new(ND_INVALID, 0, "'object' has more than %d bytes", PORT_OBJECT_TEXT - 1);
        *ret = nd_text_steal(&printable);
        return nullptr;
}

struct nd_error *rootless_port_read_filter(yyjson_val *entry, char **ret) {
        struct rootless_vxlan_filter *filter = nullptr;
        const char *text;

        nd_try(read_text(entry, "filter", &text));
        *ret = nullptr;
        if (text[0] == '\0')
                return nullptr;
        nd_try(rootless_vxlan_filter_parse(text, &filter));
        rootless_vxlan_filter_free(filter);
        *ret = nd_strdup(text);
        return nullptr;
}

/* ---- the file ---- */

static struct nd_error *read_owner(yyjson_val *entry, struct rootless_port *port) {
        const char *owner;

        nd_try(read_text(entry, "owner", &owner));
        if (owner[0] == '\0')
                return nullptr;
        if (!rootless_port_owner_valid(owner))
                return nd_error_new(ND_INVALID, 0, "invalid owner of a port '%.32s'", owner);
        nd_strset(&port->owner, owner);
        nd_try(rootless_port_read_object(entry, &port->object));
        return rootless_port_read_filter(entry, &port->filter);
}

static struct nd_error *parse_list(yyjson_val *list, struct rootless_ports *ports, uint64_t *highest) {
        yyjson_arr_iter each = yyjson_arr_iter_with(list);
        yyjson_val *item;

        while ((item = yyjson_arr_iter_next(&each))) {
                struct rootless_port port = {.fds = {-EBADF, -EBADF}, .id = yyjson_get_uint(yyjson_obj_get(item, "id"))};

                if (port.id == 0 || port.id > UINT32_MAX || ports->count == PORTS_MAX)
                        return nd_error_new(ND_INVALID, 0,
                                            "invalid list of ports: an entry without an ID, or more than %d entries",
                                            PORTS_MAX);
                nd_try(rootless_port_read_json(yyjson_obj_get(item, "spec"), &port.spec));
                if (port.id > *highest)
                        *highest = port.id;
                nd_vector_push(ports, port); /* before the rest, for its destructor */
                nd_try(read_owner(item, &ports->items[ports->count - 1]));
        }
        return nullptr;
}

struct nd_error *rootless_ports_parse(const char *text, size_t length, struct rootless_ports *ret, uint64_t *ret_next) {
        nd_cleanup(rootless_ports_done) struct rootless_ports ports = {};
        nd_autojson yyjson_doc *doc = nullptr;
        uint64_t highest = 0, next;

        nd_try(nd_json_parse(text, length, PORTS_BYTES, &doc));
        if (!yyjson_is_arr(yyjson_obj_get(yyjson_doc_get_root(doc), "ports")))
                return nd_error_new(ND_INVALID, 0, "invalid list of ports");
        nd_try(parse_list(yyjson_obj_get(yyjson_doc_get_root(doc), "ports"), &ports, &highest));
        next = yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(doc), "next"));
        *ret_next = next > highest && next < UINT32_MAX ? next : highest + 1;
        memcpy(ret, &ports, sizeof ports);
        ports = (typeof(ports)) {};
        return nullptr;
}

static void write_port(struct nd_json_out *out, const struct rootless_port *port) {
        nd_json_open(out, nullptr, '{');
        nd_json_number(out, "id", port->id);
        rootless_port_write_json(out, "spec", &port->spec);
        if (port->owner)
                nd_json_string(out, "owner", port->owner);
        if (port->object)
                nd_json_string(out, "object", port->object);
        if (port->filter)
                nd_json_string(out, "filter", port->filter);
        nd_json_close(out, '}');
}

char *rootless_ports_format(const struct rootless_ports *ports, bool owned, uint64_t next) {
        nd_autotext struct nd_text text = ND_TEXT(PORTS_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "next", next);
        nd_json_open(&out, "ports", '[');
        nd_vector_each (port, ports) {
                if ((port->owner != nullptr) == owned)
                        write_port(&out, port);
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_text_add(&text, "\n");
        return nd_text_steal(&text);
}

static bool has_id(const struct rootless_ports *ports, uint64_t id) {
        nd_vector_each (port, ports) {
                if (port->id == id)
                        return true;
        }
        return false;
}

struct nd_error *rootless_ports_load(int dir_fd, const char *file, struct rootless_ports *ports, uint64_t *next) {
        nd_cleanup(rootless_ports_done) struct rootless_ports loaded = {};
        nd_autofree char *text = nullptr;
        size_t length;
        uint64_t after = 1;
        struct nd_error *error = nd_file_read(dir_fd, file, PORTS_BYTES, &text, &length);

        if (nd_error_errno(error) == ENOENT) {
                nd_error_free(error);
                return nullptr;
        }
        nd_try(error);
        nd_try(nd_error_wrap(rootless_ports_parse(text, length, &loaded, &after), "%s", file));
        nd_vector_each (port, &loaded) {
                if (ports->count < PORTS_MAX && !has_id(ports, port->id))
                        nd_vector_push(ports, nd_take(*port, ((struct rootless_port) {.fds = {-EBADF, -EBADF}})));
        }
        *next = after > *next ? after : *next;
        return nullptr;
}

struct nd_error *rootless_ports_save(int dir_fd, const char *file, const struct rootless_ports *ports, uint64_t next) {
        nd_autofree char *text = rootless_ports_format(ports, nd_streq(file, PORTS_OWNED_FILE), next);

        return nd_file_replace(dir_fd, file, text, strlen(text), 0600);
}

/* ---- listening ---- */

/* Whether the process may bind all ports: it has the capability by the program's file, or by its
 * service manager. */
static bool may_bind_all(void) {
        enum { NET_BIND_SERVICE = 10 };
        nd_autofree char *status = nullptr;
        const char *line;

        /* The sysctl applies if it cannot be read. */
        nd_ignore(nd_file_read_kernel("/proc/self/status", 16 * 1024, &status));
        line = status ? strstr(status, "\nCapEff:") : nullptr;
        return line && strtoull(line + strlen("\nCapEff:"), nullptr, 16) & (UINT64_C(1) << NET_BIND_SERVICE);
}

uint16_t rootless_port_lowest(void) {
        nd_autofree char *text = nullptr;
        unsigned long lowest;

        if (may_bind_all())
                return 1;
        /* The kernel's default applies if it cannot be read. */
        nd_ignore(nd_file_read_kernel("/proc/sys/net/ipv4/ip_unprivileged_port_start", 64, &text));
        lowest = text ? strtoul(text, nullptr, 10) : 1024;
        return lowest > UINT16_MAX ? UINT16_MAX : lowest == 0 ? 1 : (uint16_t) lowest;
}

static int set_option(int fd, int level, int name, int value) {
        return setsockopt(fd, level, name, &value, sizeof value);
}

/* Options that accepted sockets inherit are set here, once. */
static int set_options(int fd, const struct rootless_port_spec *spec, int family) {
        int r = family == AF_INET6 ? set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) : 0;

        if (r == 0 && spec->stream)
                r = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (r == 0 && spec->stream)
                r = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        if (r == 0 && spec->stream)
                r = set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        if (r == 0 && !spec->stream) /* a reply must come from the address that the client used */
                r = family == AF_INET ? set_option(fd, IPPROTO_IP, IP_PKTINFO, 1)
                                      : set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
        return r;
}

static struct nd_error *listen_error(const struct rootless_port_spec *spec, int number) {
        char text[PORT_TEXT];
        const char *advice = number == EACCES
                                     ? " (as root: sysctl net.ipv4.ip_unprivileged_port_start=N allows lower ports to users)"
                             : number == EADDRINUSE ? " (ss -lptu shows the process that uses it)"
                                                    : "";

        return nd_error_new(number == EADDRINUSE ? ND_EXISTS : nd_error_code_of(number), number, "publish %s%s",
                            rootless_port_format(spec, text), advice);
}

struct nd_error *rootless_port_listen(const struct rootless_port_spec *spec, int family, int *ret_fd) {
        nd_autoclose int fd = -EBADF;
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(spec->parent_port), .sin_addr = spec->parent.v4};
        struct sockaddr_in6 v6 = {
                .sin6_family = AF_INET6, .sin6_port = htons(spec->parent_port), .sin6_addr = spec->parent.v6};
        const struct sockaddr *address = family == AF_INET ? (const void *) &v4 : (const void *) &v6;
        socklen_t length = family == AF_INET ? sizeof v4 : sizeof v6;

        *ret_fd = -EBADF;
        if ((spec->only && spec->only != family) || (spec->parent.family && spec->parent.family != family))
                return nullptr;
        fd = socket(family, (spec->stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && set_options(fd, spec, family) == 0 && bind(fd, address, length) == 0 &&
            (!spec->stream || listen(fd, BACKLOG) == 0)) {
                *ret_fd = nd_take_fd(fd);
                return nullptr;
        }
        if (family == AF_INET6 && spec->parent.family == 0 && spec->only == 0 &&
            (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
                return nullptr; /* a host without IPv6 still has IPv4 */
        return listen_error(spec, errno);
}
