/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - the file of `up --peers`: the nodes of a cluster, their pods' networks, and where their
 * VXLAN ports are published
 *
 *      # name    pods            host
 *      alpha     10.244.1.0/24   192.0.2.11
 *      beta      10.244.2.0/24   192.0.2.12:8473
 *      mtu 1400
 *
 * All nodes have the same file; each finds its own line by its name. Two nodes of one host have
 * different ports. "mtu" is optional: without it each node computes its own. */
#pragma once

#include "base/text.h"
#include "sys/netlink.h"

enum {
        PEERS_MAX = 512,
        PEERS_PORTS_MAX = 16, /* different ports: nodes of one host */
        PEERS_BYTES = 256 * 1024,
        PEERS_NAME_BYTES = 254, /* of a Node object, with the terminator */
        PEERS_MTU_MIN = 576,
        PEERS_MTU_MAX = 65450,
        PEERS_PORT = 8472,
};

struct rootless_peer {
        char name[PEERS_NAME_BYTES];
        struct nd_netlink_address pods; /* IPv4 */
        struct nd_netlink_address host;
        uint16_t port; /* of the host, UDP */
};

struct rootless_peers {
        struct rootless_peer *items;
        size_t count;
        size_t capacity;
        uint32_t mtu; /* 0 = computed */
};

void rootless_peers_done(struct rootless_peers *peers);

/* Checks the whole file: no name, network, or host with its port occurs twice, and no networks
 * overlap. */
[[nodiscard]] struct nd_error *rootless_peers_parse(const char *text, size_t length, struct rootless_peers *ret);
[[nodiscard]] struct nd_error *rootless_peers_read(const char *path, struct rootless_peers *ret);

/* The list as a file that parses to it. */
[[nodiscard]] char *rootless_peers_format(const struct rootless_peers *peers);
/* ADDRESS:PORT of a node's host, the address in brackets if it is IPv6. */
[[nodiscard]] char *rootless_peer_host_text(const struct rootless_peer *peer);

/* The line of a node. */
[[nodiscard]] struct nd_error *rootless_peers_find(const struct rootless_peers *peers, const char *name,
                                                   const struct rootless_peer **ret);

/* Whether an address or network is within a network. */
[[nodiscard]] bool rootless_peers_covers(const struct nd_netlink_address *network, const struct nd_netlink_address *address);
