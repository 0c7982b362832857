/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/broker/destination.h"

#include <string.h>

#include "base/text.h"

enum {
        V4_BYTES = 4,
        V6_BYTES = 16,
};

struct range {
        uint8_t bytes[V6_BYTES];
        uint8_t bits;
        const char *why;
};

static const struct range refused_v4[] = {
        {{0}, 8, "unspecified address"},        {{127}, 8, "loopback address"},
        {{169, 254}, 16, "link-local address"}, {{192, 0, 0}, 24, "address of a protocol"},
        {{224}, 4, "multicast address"},        {{240}, 4, "reserved or broadcast address"},
};

static const struct range refused_v6[] = {
        /* unspecified, loopback and IPv4-compatible; mapped ones were unwrapped before */
        {{0}, 96, "unspecified or loopback address"},     {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "local NAT64 address"},
        {{0x20, 0x01, 0x00, 0x00}, 32, "Teredo address"}, {{0xfe, 0x80}, 10, "link-local address"},
        {{0xfe, 0xc0}, 10, "site-local address"},         {{0xff}, 8, "multicast address"},
};

/* IPv6 addresses with an IPv4 address at this offset, which is where the packets arrive. */
static const struct {
        struct range range;
        size_t offset;
} wrapped[] = {
        {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, nullptr}, 12}, /* mapped */
        {{{0x00, 0x64, 0xff, 0x9b}, 96, nullptr}, 12},                   /* NAT64 */
        {{{0x20, 0x02}, 16, nullptr}, 2},                                /* 6to4 */
};

static bool in_range(const uint8_t *address, const struct range *range) {
        size_t whole = range->bits / 8, rest = range->bits % 8;

        if (memcmp(address, range->bytes, whole) != 0)
                return false;
        return rest == 0 || ((address[whole] ^ range->bytes[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

static const char *find(const uint8_t *address, const struct range *ranges, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (in_range(address, &ranges[i]))
                        return ranges[i].why;
        return nullptr;
}

static bool is_own(const struct nd_netlink_link_addresses *own, int family, const uint8_t *address) {
        nd_vector_each (a, own) {
                if (a->address.family == family &&
                    memcmp(a->address.bytes, address, family == AF_INET ? V4_BYTES : V6_BYTES) == 0)
                        return true;
        }
        return false;
}

static const char *judge_v4(const struct nd_netlink_link_addresses *own, const uint8_t *address) {
        const char *why = find(address, refused_v4, nd_count_of(refused_v4));

        return why ? why : is_own(own, AF_INET, address) ? "address of the host" : nullptr;
}

static const char *judge_v6(const struct nd_netlink_link_addresses *own, const uint8_t *address) {
        const char *why;

        for (size_t i = 0; i < nd_count_of(wrapped); i++)
                if (in_range(address, &wrapped[i].range)) {
                        why = judge_v4(own, address + wrapped[i].offset);
                        if (why)
                                return why;
                }
        if (in_range(address, &wrapped[0].range))
                return nullptr; /* an IPv4 address that is allowed */
        why = find(address, refused_v6, nd_count_of(refused_v6));
        return why ? why : is_own(own, AF_INET6, address) ? "address of the host" : nullptr;
}

const char *rootless_broker_refusal(const struct rootless_broker_ports *ports, const struct nd_netlink_link_addresses *own,
                                    const struct nd_netlink_address *to, uint16_t port) {
        bool listed = false;

        for (size_t i = 0; i < ports->count; i++)
                listed = listed || ports->items[i] == port;
        if (!listed)
                return "port of no registry";
        if (to->family == AF_INET)
                return judge_v4(own, to->bytes);
        return to->family == AF_INET6 ? judge_v6(own, to->bytes) : "not an address";
}

struct nd_error *rootless_broker_ports_parse(const char *text, struct rootless_broker_ports *ret) {
        nd_autofree char *copy = nd_strdup(text);
        struct rootless_broker_ports ports = {};

        for (char *rest = copy, *word; (word = strsep(&rest, ","));) {
                uint32_t port;

                if (nd_text_parse_u32(word, &port) < 0 || port == 0 || port > UINT16_MAX)
                        return nd_error_new(ND_INVALID, 0, "invalid port '%s' of a registry", word);
                if (ports.count == BROKER_PORTS)
                        return nd_error_new(ND_INVALID, 0, "more than %d ports of registries", BROKER_PORTS);
                ports.items[ports.count++] = (uint16_t) port;
        }
        *ret = ports;
        return nullptr;
}
