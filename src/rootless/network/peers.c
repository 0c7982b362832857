/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/peers.h"

#include <arpa/inet.h>
#include <string.h>

#include "sys/file.h"

enum {
        WORDS = 3,
        POD_PREFIX_MIN = 8,
        POD_PREFIX_MAX = 30,
};

void rootless_peers_done(struct rootless_peers *peers) {
        nd_vector_done(peers);
        peers->mtu = 0;
}

/* ---- addresses ---- */

bool rootless_peers_covers(const struct nd_netlink_address *network, const struct nd_netlink_address *address) {
        unsigned whole = network->prefix / 8, rest = network->prefix % 8;

        if (network->family != address->family || network->prefix > address->prefix)
                return false;
        if (memcmp(network->bytes, address->bytes, whole) != 0)
                return false;
        return rest == 0 || ((network->bytes[whole] ^ address->bytes[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

static bool has_host_bits(const struct nd_netlink_address *network) {
        uint32_t mask = network->prefix == 0 ? 0 : UINT32_MAX << (32 - network->prefix);

        return (ntohl(network->v4.s_addr) & ~mask) != 0;
}

static struct nd_error *parse_pods(const char *text, struct nd_netlink_address *ret) {
        if (!strchr(text, '/') || nd_netlink_address_parse(text, ret) < 0 || ret->family != AF_INET ||
            ret->prefix < POD_PREFIX_MIN || ret->prefix > POD_PREFIX_MAX || has_host_bits(ret) || ret->bytes[0] == 0 ||
            ret->bytes[0] == 127 || ret->bytes[0] >= 224)
                return nd_error_new(ND_INVALID, 0,
                                    "invalid network of pods '%.64s': must be an IPv4 network like 10.244.1.0/24", text);
        return nullptr;
}

/* An address that other hosts can send to. */
static bool is_reachable(const struct nd_netlink_address *a) {
        if (a->family == AF_INET)
                return a->bytes[0] != 0 && a->bytes[0] != 127 && a->bytes[0] < 224;
        return !IN6_IS_ADDR_UNSPECIFIED(&a->v6) && !IN6_IS_ADDR_LOOPBACK(&a->v6) && !IN6_IS_ADDR_MULTICAST(&a->v6) &&
               !IN6_IS_ADDR_LINKLOCAL(&a->v6) && !IN6_IS_ADDR_V4MAPPED(&a->v6);
}

/* Splits ADDRESS[:PORT], the address in brackets if it is IPv6 and has a port. */
static char *split_host(char *text, const char **ret_port) {
        char *end = text[0] == '[' ? strchr(text, ']') : nullptr;

        *ret_port = nullptr;
        if (text[0] == '[') {
                if (!end || (end[1] != ':' && end[1] != '\0'))
                        return nullptr;
                *end = '\0';
                *ret_port = end[1] == ':' ? end + 2 : nullptr;
                return text + 1;
        }
        end = strchr(text, ':');
        if (end && !strchr(end + 1, ':')) {
                *end = '\0';
                *ret_port = end + 1;
        }
        return text;
}

static struct nd_error *parse_host(const char *text, struct rootless_peer *peer) {
        nd_autofree char *copy = nd_strdup(text);
        const char *port, *address = split_host(copy, &port);
        uint64_t number = PEERS_PORT;

        if (!address || strchr(address, '/') || nd_netlink_address_parse(address, &peer->host) < 0 ||
            !is_reachable(&peer->host))
                return nd_error_new(ND_INVALID, 0,
                                    "invalid host '%.64s': must be an address that other hosts reach, with :PORT if it is not "
                                    "%d",
                                    text, PEERS_PORT);
        if (port && (nd_text_parse_u64(port, UINT16_MAX, &number) < 0 || number == 0))
                return nd_error_new(ND_INVALID, 0, "invalid port '%.16s': must be 1 to 65535", port);
        peer->port = (uint16_t) number;
        return nullptr;
}

static bool name_valid(const char *name) {
        size_t length = strlen(name);

        return length > 0 && length < PEERS_NAME_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == length &&
               name[0] != '.' && name[0] != '-';
}

/* ---- the file ---- */

static struct nd_error *check_against(const struct rootless_peer *peer, const struct rootless_peer *other) {
        if (nd_streq(peer->name, other->name))
                return nd_error_new(ND_INVALID, 0, "node '%s' occurs twice", peer->name);
        if (rootless_peers_covers(&peer->pods, &other->pods) || rootless_peers_covers(&other->pods, &peer->pods))
                return nd_error_new(ND_INVALID, 0, "the networks of pods of '%s' and '%s' overlap", other->name, peer->name);
        if (peer->host.family != other->host.family)
                return nd_error_new(ND_INVALID, 0, "the hosts of '%s' and '%s' have addresses of different families",
                                    other->name, peer->name);
        if (nd_netlink_address_equal(&peer->host, &other->host) && peer->port == other->port)
                return nd_error_new(ND_INVALID, 0,
                                    "'%s' and '%s' share a host's address and port: two nodes of one host need different "
                                    "ports, like ADDRESS:%u",
                                    other->name, peer->name, peer->port + 1U);
        return nullptr;
}

static struct nd_error *check_ports(const struct rootless_peers *peers) {
        uint16_t seen[PEERS_PORTS_MAX];
        size_t count = 0;

        nd_vector_each (peer, peers) {
                size_t i = 0;

                while (i < count && seen[i] != peer->port)
                        i++;
                if (i == PEERS_PORTS_MAX)
                        return nd_error_new(ND_INVALID, 0, "more than %d different ports", PEERS_PORTS_MAX);
                if (i == count)
                        seen[count++] = peer->port;
        }
        return nullptr;
}

static struct nd_error *add_peer(char *const words[WORDS], struct rootless_peers *peers) {
        struct rootless_peer peer = {};

        if (!name_valid(words[0]))
                return nd_error_new(ND_INVALID, 0, "invalid name of a node '%.64s'", words[0]);
        memcpy(peer.name, words[0], strlen(words[0]) + 1);
        nd_try(parse_pods(words[1], &peer.pods));
        nd_try(parse_host(words[2], &peer));
        nd_vector_each (other, peers) {
                nd_try(check_against(&peer, other));
        }
        if (peers->count == PEERS_MAX)
                return nd_error_new(ND_INVALID, 0, "more than %d nodes", PEERS_MAX);
        nd_vector_push(peers, peer);
        return nullptr;
}

static struct nd_error *set_mtu(const char *text, struct rootless_peers *peers) {
        uint64_t mtu;

        if (peers->mtu)
                return nd_error_new(ND_INVALID, 0, "a second mtu");
        if (nd_text_parse_u64(text, PEERS_MTU_MAX, &mtu) < 0 || mtu < PEERS_MTU_MIN)
                return nd_error_new(ND_INVALID, 0, "invalid mtu '%.16s': must be %d to %d", text, PEERS_MTU_MIN,
                                    PEERS_MTU_MAX);
        peers->mtu = (uint32_t) mtu;
        return nullptr;
}

static struct nd_error *parse_line(char *line, struct rootless_peers *peers) {
        char *words[WORDS] = {}, *rest = line, *word;
        size_t count = 0;

        line[strcspn(line, "#")] = '\0';
        while ((word = strsep(&rest, " \t\r"))) {
                if (*word == '\0')
                        continue;
                if (count == WORDS)
                        return nd_error_new(ND_INVALID, 0, "more than %d words", WORDS);
                words[count++] = word;
        }
        if (count == 0)
                return nullptr;
        if (count == 2 && nd_streq(words[0], "mtu"))
                return set_mtu(words[1], peers);
        if (count != WORDS)
                return nd_error_new(ND_INVALID, 0, "must be: NAME POD-NETWORK HOST-ADDRESS[:PORT]");
        return add_peer(words, peers);
}

struct nd_error *rootless_peers_parse(const char *text, size_t length, struct rootless_peers *ret) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        nd_autofree char *copy = nullptr;
        char *rest, *line;
        unsigned number = 0;

        if (length > PEERS_BYTES || memchr(text, '\0', length))
                return nd_error_new(ND_INVALID, 0, "the list of nodes has a null byte or more than %d bytes", PEERS_BYTES);
        copy = nd_strndup(text, length);
        rest = copy;
        while ((line = strsep(&rest, "\n"))) {
                number++;
                nd_try(nd_error_wrap(parse_line(line, &peers), "line %u", number));
        }
        nd_try(check_ports(&peers));
        if (peers.count == 0)
                return nd_error_new(ND_INVALID, 0, "the list of nodes is empty");
        memcpy(ret, &peers, sizeof peers);
        peers = (struct rootless_peers) {};
        return nullptr;
}

struct nd_error *rootless_peers_read(const char *path, struct rootless_peers *ret) {
        nd_autofree char *text = nullptr;
        size_t length;

        nd_try(nd_error_wrap(nd_file_read_linked(AT_FDCWD, path, PEERS_BYTES, &text, &length), "list of nodes"));
        return nd_error_wrap(rootless_peers_parse(text, length, ret), "%s", path);
}

char *rootless_peer_host_text(const struct rootless_peer *peer) {
        char address[ND_ADDRESS_TEXT];

        (void) nd_netlink_address_text(&peer->host, address);
        return nd_format(peer->host.family == AF_INET ? "%s:%u" : "[%s]:%u", address, peer->port);
}

char *rootless_peers_format(const struct rootless_peers *peers) {
        nd_autotext struct nd_text text = ND_TEXT(2 * PEERS_BYTES);

        nd_vector_each (peer, peers) {
                nd_autofree char *host = rootless_peer_host_text(peer);
                char pods[ND_ADDRESS_TEXT];

                nd_text_addf(&text, "%s %s/%u %s\n", peer->name, nd_netlink_address_text(&peer->pods, pods), peer->pods.prefix,
                             host);
        }
        if (peers->mtu)
                nd_text_addf(&text, "mtu %u\n", peers->mtu);
        return nd_text_steal(&text);
}

struct nd_error *rootless_peers_find(const struct rootless_peers *peers, const char *name, const struct rootless_peer **ret) {
        nd_vector_each (peer, peers) {
                if (nd_streq(peer->name, name)) {
                        *ret = peer;
                        return nullptr;
                }
        }
        return nd_error_new(ND_NOT_FOUND, 0, "no line for this node, '%s'; add one, or choose the name with --node-name",
                            name);
}
