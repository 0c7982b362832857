/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/overlay.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <net/if.h>
#include <string.h>

#include "rootless/network/netplan.h"
#include "rootless/network/sockets.h"
#include "sys/nftables.h"

enum {
        OVERHEAD_V4 = 50, /* IP, UDP, VXLAN and Ethernet headers */
        OVERHEAD_V6 = 70,
        SOURCE_PORTS = 8,
        SOURCE_PORT_FIRST = 61000, /* above the ports that Linux gives to other programs */
        SOURCE_PORT_BLOCKS = 500,
        PRIORITY_FILTER = -10, /* before the filters of others */
        PRIORITY_NAT = 100,
};

#define TABLE "nodens-overlay"

void rootless_overlay_done(struct rootless_overlay *overlay) {
        nd_vector_done(overlay);
        *overlay = (struct rootless_overlay) {};
}

struct rootless_overlay rootless_overlay_make(const struct rootless_peers *peers, const struct rootless_peer *own,
                                              uint32_t mtu) {
        struct rootless_overlay overlay = {.mtu = mtu, .pods = own->pods, .family = own->host.family};

        nd_vector_each (peer, peers) {
                struct rootless_overlay_tunnel tunnel = {.pods = peer->pods, .host = peer->host, .port = peer->port};

                if (peer != own)
                        nd_vector_push(&overlay, tunnel);
        }
        return overlay;
}

struct nd_error *rootless_overlay_mtu(uint32_t link_mtu, uint32_t node_mtu, int family, uint32_t *ret) {
        uint32_t outer = link_mtu < node_mtu ? link_mtu : node_mtu, overhead = family == AF_INET6 ? OVERHEAD_V6 : OVERHEAD_V4;
        uint32_t mtu = outer > overhead ? outer - overhead : 0;

        if (mtu < PEERS_MTU_MIN)
                return nd_error_new(ND_PRECONDITION, 0, "an MTU of %u is too small for VXLAN: at least %u is needed", outer,
                                    PEERS_MTU_MIN + overhead);
        *ret = mtu < PEERS_MTU_MAX ? mtu : PEERS_MTU_MAX;
        return nullptr;
}

/* ---- the message ---- */

static void add_number(struct nd_text *text, const char *key, uint32_t value) {
        nd_autofree char *number = nd_format("%u", value);

        rootless_control_add(text, key, number);
}

void rootless_overlay_format(struct nd_text *text, const struct rootless_overlay *overlay) {
        char pods[ND_ADDRESS_TEXT], host[ND_ADDRESS_TEXT];
        nd_autofree char *own = nd_format("%s/%u", nd_netlink_address_text(&overlay->pods, pods), overlay->pods.prefix);

        rootless_control_begin(text, "overlay");
        add_number(text, "mtu", overlay->mtu);
        rootless_control_add(text, "pods", own);
        rootless_control_add(text, "family", overlay->family == AF_INET6 ? "6" : "4");
        nd_vector_each (tunnel, overlay) {
                nd_autofree char *peer =
                        nd_format("%s/%u %s %u", nd_netlink_address_text(&tunnel->pods, pods), tunnel->pods.prefix,
                                  nd_netlink_address_text(&tunnel->host, host), tunnel->port);

                rootless_control_add(text, "peer", peer);
        }
}

static bool parse_pods(const char *text, struct nd_netlink_address *ret) {
        return text && strchr(text, '/') && nd_netlink_address_parse(text, ret) == 0 && ret->family == AF_INET &&
               ret->prefix > 0;
}

static struct nd_error *parse_tunnel(const char *text, int family, struct rootless_overlay_tunnel *ret) {
        nd_autofree char *copy = nd_strdup(text);
        char *rest = copy, *pods = strsep(&rest, " "), *host = strsep(&rest, " "), *port = rest;
        uint64_t number;

        if (!parse_pods(pods, &ret->pods) || !host || strchr(host, '/') || nd_netlink_address_parse(host, &ret->host) < 0 ||
            ret->host.family != family || !port || nd_text_parse_u64(port, UINT16_MAX, &number) < 0 || number == 0)
                return nd_error_new(ND_INVALID, 0, "invalid peer '%.64s'", text);
        ret->port = (uint16_t) number;
        return nullptr;
}

struct nd_error *rootless_overlay_parse(const struct rootless_control *message, struct rootless_overlay *ret) {
        nd_cleanup(rootless_overlay_done) struct rootless_overlay overlay = {};
        const char *mtu = rootless_control_get(message, "mtu"), *family = rootless_control_get(message, "family");
        uint64_t number;

        if (!mtu || nd_text_parse_u64(mtu, PEERS_MTU_MAX, &number) < 0 || number < PEERS_MTU_MIN)
                return nd_error_new(ND_INVALID, 0, "invalid MTU of an overlay");
        if (!parse_pods(rootless_control_get(message, "pods"), &overlay.pods))
                return nd_error_new(ND_INVALID, 0, "invalid network of pods of an overlay");
        overlay.mtu = (uint32_t) number;
        overlay.family = family && nd_streq(family, "6") ? AF_INET6 : AF_INET;
        nd_vector_each (field, &message->fields) {
                struct rootless_overlay_tunnel tunnel = {};

                if (!nd_streq(field->key, "peer"))
                        continue;
                if (overlay.count == PEERS_MAX)
                        return nd_error_new(ND_INVALID, 0, "more than %d peers", PEERS_MAX);
                nd_try(parse_tunnel(field->value, overlay.family, &tunnel));
                nd_vector_push(&overlay, tunnel);
        }
        memcpy(ret, &overlay, sizeof overlay);
        overlay = (struct rootless_overlay) {};
        return nullptr;
}

/* ---- rules ---- */

static void set_rule(struct nd_nftables_chain *chain, size_t at, const struct nd_nftables_step *steps, size_t count) {
        if (at < ND_NFT_RULES)
                memcpy(chain->rules[at], steps, count * sizeof *steps);
}

/* Only the forwarder, which filters, may send to the VXLAN device: not a pod to the node's own
 * address. */
static void forbid_input(struct nd_nftables_chain *chain) {
        const struct nd_nftables_step steps[] = {{.kind = ND_NFT_LOAD_PROTOCOL},
                                                 {.kind = ND_NFT_EQUAL, .value = IPPROTO_UDP},
                                                 {.kind = ND_NFT_LOAD_PORT},
                                                 {.kind = ND_NFT_EQUAL, .value = PEERS_PORT},
                                                 {.kind = ND_NFT_LOAD_MARK},
                                                 {.kind = ND_NFT_MASK, .mask = SOCKETS_MARK_MASK},
                                                 {.kind = ND_NFT_DIFFERS, .value = SOCKETS_MARK},
                                                 {.kind = ND_NFT_DROP}};

        set_rule(chain, 0, steps, nd_count_of(steps));
}

static void forbid_port(struct nd_nftables_chain *chain, size_t at, uint16_t port) {
        const struct nd_nftables_step steps[] = {{.kind = ND_NFT_LOAD_OUTPUT},   {.kind = ND_NFT_EQUAL, .name = NET_TAP},
                                                 {.kind = ND_NFT_LOAD_PROTOCOL}, {.kind = ND_NFT_EQUAL, .value = IPPROTO_UDP},
                                                 {.kind = ND_NFT_LOAD_PORT},     {.kind = ND_NFT_EQUAL, .value = port},
                                                 {.kind = ND_NFT_DROP}};

        set_rule(chain, at, steps, nd_count_of(steps));
}

static void forbid_transit(struct nd_nftables_chain *chain) {
        const struct nd_nftables_step steps[] = {{.kind = ND_NFT_LOAD_INPUT},
                                                 {.kind = ND_NFT_EQUAL, .name = OVERLAY_DEVICE},
                                                 {.kind = ND_NFT_LOAD_OUTPUT},
                                                 {.kind = ND_NFT_EQUAL, .name = NET_TAP},
                                                 {.kind = ND_NFT_DROP}};

        set_rule(chain, 0, steps, nd_count_of(steps));
}

/* One rule for each port: nodes of one host have different ones. */
static void forbid_ports(struct nd_nftables_chain *chain, const struct rootless_overlay *overlay) {
        uint16_t seen[ND_NFT_RULES];
        size_t count = 0;

        nd_vector_each (tunnel, overlay) {
                size_t i = 0;

                while (i < count && seen[i] != tunnel->port)
                        i++;
                if (i < count || count + 1 >= ND_NFT_RULES)
                        continue;
                seen[count++] = tunnel->port;
                forbid_port(chain, count, tunnel->port);
        }
}
static_assert(PEERS_PORTS_MAX + 1 < ND_NFT_RULES);

static void masquerade(struct nd_nftables_chain *chain, const struct nd_netlink_address *pods) {
        const struct nd_nftables_step steps[] = {{.kind = ND_NFT_LOAD_OUTPUT},
                                                 {.kind = ND_NFT_EQUAL, .name = NET_TAP},
                                                 {.kind = ND_NFT_LOAD_FAMILY},
                                                 {.kind = ND_NFT_EQUAL, .value = NFPROTO_IPV4},
                                                 {.kind = ND_NFT_LOAD_SOURCE},
                                                 {.kind = ND_NFT_MASK, .mask = htonl(UINT32_MAX << (32 - pods->prefix))},
                                                 {.kind = ND_NFT_EQUAL, .value = pods->v4.s_addr},
                                                 {.kind = ND_NFT_MASQUERADE}};

        set_rule(chain, 0, steps, nd_count_of(steps));
}

static struct nd_error *put_rules(const struct rootless_overlay *overlay) {
        enum { INPUT, FORWARD, POSTROUTING, CHAINS };
        static const struct nd_nftables_chain chains[] = {
                [INPUT] = {.name = "input", .type = "filter", .hook = NF_INET_LOCAL_IN, .priority = PRIORITY_FILTER},
                [FORWARD] = {.name = "forward", .type = "filter", .hook = NF_INET_FORWARD, .priority = PRIORITY_FILTER},
                [POSTROUTING] = {.name = "postrouting", .type = "nat", .hook = NF_INET_POST_ROUTING, .priority = PRIORITY_NAT},
                [CHAINS] = {},
        };
        nd_autofree struct nd_nftables_chain *filled = nd_realloc_array(nullptr, nd_count_of(chains), sizeof *filled);

        memcpy(filled, chains, sizeof chains);
        forbid_input(&filled[INPUT]);
        forbid_transit(&filled[FORWARD]);
        forbid_ports(&filled[FORWARD], overlay);
        masquerade(&filled[POSTROUTING], &overlay->pods);
        return nd_nftables_put(TABLE, filled);
}

/* ---- tunnels ---- */

/* Locally administered, and different for different networks. */
static void make_mac(const struct nd_netlink_address *pods, uint8_t ret[static ND_MAC]) {
        ret[0] = 0x0e;
        ret[1] = 0x6e;
        memcpy(ret + 2, pods->bytes, 4);
}

static struct nd_netlink_address single(const struct nd_netlink_address *network) {
        struct nd_netlink_address address = *network;

        address.prefix = 32;
        return address;
}

static struct nd_netlink_tunnel tunnel_of(unsigned link, const struct rootless_overlay_tunnel *tunnel) {
        struct nd_netlink_tunnel made = {
                .link = link, .gateway = single(&tunnel->pods), .host = tunnel->host, .port = tunnel->port};

        make_mac(&tunnel->pods, made.mac);
        return made;
}

static struct nd_netlink_route route_of(unsigned link, const struct rootless_overlay_tunnel *tunnel) {
        return (struct nd_netlink_route) {.link = link, .to = tunnel->pods, .gateway = single(&tunnel->pods)};
}

static bool has_tunnel(const struct rootless_overlay *overlay, const struct rootless_overlay_tunnel *wanted) {
        nd_vector_each (tunnel, overlay) {
                if (nd_netlink_address_equal(&tunnel->pods, &wanted->pods) &&
                    nd_netlink_address_equal(&tunnel->host, &wanted->host) && tunnel->port == wanted->port)
                        return true;
        }
        return false;
}

static struct nd_error *drop_tunnels(struct nd_netlink *netlink, unsigned link, const struct rootless_overlay *before,
                                     const struct rootless_overlay *overlay) {
        nd_vector_each (tunnel, before) {
                struct nd_netlink_tunnel gone = tunnel_of(link, tunnel);
                struct nd_netlink_route route = route_of(link, tunnel);

                if (has_tunnel(overlay, tunnel))
                        continue;
                nd_try(nd_netlink_route_remove(netlink, &route));
                nd_try(nd_netlink_tunnel_remove(netlink, &gone));
        }
        return nullptr;
}

static struct nd_error *add_tunnels(struct nd_netlink *netlink, unsigned link, const struct rootless_overlay *overlay) {
        nd_vector_each (tunnel, overlay) {
                struct nd_netlink_tunnel made = tunnel_of(link, tunnel);
                struct nd_netlink_route route = route_of(link, tunnel);

                nd_try(nd_netlink_tunnel_replace(netlink, &made));
                nd_try(nd_netlink_route_replace(netlink, &route));
        }
        return nullptr;
}

/* Nodes of one host send from different ports. */
static uint16_t source_ports(const struct nd_netlink_address *pods) {
        uint32_t number = ntohl(pods->v4.s_addr) >> (32 - pods->prefix);

        return (uint16_t) (SOURCE_PORT_FIRST + number % SOURCE_PORT_BLOCKS * SOURCE_PORTS);
}

static struct nd_error *make_device(struct nd_netlink *netlink, const struct rootless_overlay *overlay, unsigned *ret_link) {
        uint16_t first = source_ports(&overlay->pods);
        struct nd_netlink_vxlan device = {.name = OVERLAY_DEVICE,
                                          .vni = OVERLAY_VNI,
                                          .port = PEERS_PORT,
                                          .source_ports = first,
                                          .source_last = (uint16_t) (first + SOURCE_PORTS - 1),
                                          .family = overlay->family};
        struct nd_netlink_address own = single(&overlay->pods);

        make_mac(&overlay->pods, device.mac);
        nd_try(nd_netlink_vxlan_make(netlink, &device));
        *ret_link = if_nametoindex(OVERLAY_DEVICE);
        nd_try(nd_netlink_link_up(netlink, *ret_link, overlay->mtu));
        return nd_netlink_link_add_address(netlink, *ret_link, &own);
}

/* Rules first: the device must not be reachable without them. */
struct nd_error *rootless_overlay_apply(const struct rootless_overlay *before, const struct rootless_overlay *overlay) {
        nd_cleanup(nd_netlink_done) struct nd_netlink netlink = ND_NETLINK_NONE;
        unsigned link = if_nametoindex(OVERLAY_DEVICE);
        bool again =
                before->mtu && (before->family != overlay->family || !nd_netlink_address_equal(&before->pods, &overlay->pods));

        nd_try(put_rules(overlay));
        nd_try(nd_netlink_open(&netlink));
        if (link > 0 && again)
                nd_try(nd_netlink_link_remove(&netlink, link));
        nd_try(make_device(&netlink, overlay, &link));
        if (!again)
                nd_try(drop_tunnels(&netlink, link, before, overlay));
        return add_tunnels(&netlink, link, overlay);
}
