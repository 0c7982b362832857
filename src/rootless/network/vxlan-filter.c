/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/network/vxlan-filter.h"

#include <string.h>

enum {
        VXLAN_HEADER = 8,
        VXLAN_FLAG_VNI = 0x08,
        VXLAN_VNI_AT = 4,
        ETHERNET_HEADER = 14,
        ETHERNET_TYPE_AT = 12,
        IP_HEADER = 20,
        IP_SOURCE_AT = 12,
        IP_DESTINATION_AT = 16,
        VNI_MAX = (1 << 24) - 1,
        SOURCES_MAX = PEERS_MAX,
};

void rootless_vxlan_filter_free(struct rootless_vxlan_filter *filter) {
        if (!filter)
                return;
        free(filter->sources);
        free(filter);
}

static void filter_cleanup(struct rootless_vxlan_filter **filter) {
        rootless_vxlan_filter_free(*filter);
}

/* ---- text ---- */

static void add_network(struct nd_text *text, const struct nd_netlink_address *network) {
        char address[ND_ADDRESS_TEXT];

        nd_text_addf(text, "%s/%u", nd_netlink_address_text(network, address), network->prefix);
}

char *rootless_vxlan_filter_format(const struct rootless_peers *peers, const struct rootless_peer *own, uint32_t vni) {
        nd_autotext struct nd_text text = ND_TEXT(VXLAN_FILTER_BYTES);
        const char *separator = " ";

        nd_text_addf(&text, "%u ", vni);
        add_network(&text, &own->pods);
        nd_vector_each (peer, peers) {
                char host[ND_ADDRESS_TEXT];

                if (nd_streq(peer->name, own->name))
                        continue;
                nd_text_addf(&text, "%s%s=", separator, nd_netlink_address_text(&peer->host, host));
                add_network(&text, &peer->pods);
                separator = ",";
        }
        return nd_text_steal(&text);
}

static int compare(const void *a, const void *b) {
        const struct rootless_vxlan_source *one = a, *other = b;

        if (one->host.family != other->host.family)
                return one->host.family < other->host.family ? -1 : 1;
        return memcmp(one->host.bytes, other->host.bytes, one->host.family == AF_INET ? 4 : 16);
}

static struct nd_error *parse_network(const char *text, struct nd_netlink_address *ret) {
        if (!strchr(text, '/') || nd_netlink_address_parse(text, ret) < 0 || ret->family != AF_INET)
                return nd_error_new(ND_INVALID, 0, "invalid filter of a port: '%.64s' is not an IPv4 network", text);
        return nullptr;
}

static struct nd_error *parse_source(char *word, struct rootless_vxlan_filter *filter) {
        struct rootless_vxlan_source *source = &filter->sources[filter->count];
        char *pods = strchr(word, '=');

        if (filter->count == SOURCES_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid filter of a port: more than %d peers", SOURCES_MAX);
        if (!pods)
                return nd_error_new(ND_INVALID, 0, "invalid filter of a port: '%.64s' is not HOST=NETWORK", word);
        *pods++ = '\0';
        if (strchr(word, '/') || nd_netlink_address_parse(word, &source->host) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid filter of a port: '%.64s' is not an address", word);
        nd_try(parse_network(pods, &source->pods));
        filter->count++;
        return nullptr;
}

struct nd_error *rootless_vxlan_filter_parse(const char *text, struct rootless_vxlan_filter **ret) {
        nd_cleanup(filter_cleanup) struct rootless_vxlan_filter *filter = nd_new(struct rootless_vxlan_filter);
        nd_autofree char *copy = nd_strdup(text);
        char *rest = copy, *vni = strsep(&rest, " "), *pods = strsep(&rest, " "), *word;
        uint64_t number;

        *filter = (struct rootless_vxlan_filter) {.sources =
                                                          nd_realloc_array(nullptr, SOURCES_MAX + 1, sizeof *filter->sources)};
        if (strlen(text) > VXLAN_FILTER_BYTES || !vni || !pods || nd_text_parse_u64(vni, VNI_MAX, &number) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid filter of a port");
        filter->vni = (uint32_t) number;
        nd_try(parse_network(pods, &filter->pods));
        while ((word = strsep(&rest, ",")))
                if (*word)
                        nd_try(parse_source(word, filter));
        qsort(filter->sources, filter->count, sizeof *filter->sources, compare);
        *ret = nd_take_ptr(filter);
        return nullptr;
}

/* ---- datagrams ---- */

/* The addresses of the IPv4 packet in a VXLAN frame; false if it is anything else. */
static bool read_frame(const uint8_t *bytes, size_t length, uint32_t vni, struct nd_netlink_address *source,
                       struct nd_netlink_address *destination) {
        const uint8_t *frame = bytes + VXLAN_HEADER, *packet = frame + ETHERNET_HEADER;

        if (length < VXLAN_HEADER + ETHERNET_HEADER + IP_HEADER)
                return false;
        if (bytes[0] != VXLAN_FLAG_VNI ||
            ((uint32_t) bytes[VXLAN_VNI_AT] << 16 | (uint32_t) bytes[VXLAN_VNI_AT + 1] << 8 | bytes[VXLAN_VNI_AT + 2]) != vni)
                return false;
        if (frame[ETHERNET_TYPE_AT] != 0x08 || frame[ETHERNET_TYPE_AT + 1] != 0x00 || packet[0] >> 4 != 4)
                return false;
        *source = (struct nd_netlink_address) {.family = AF_INET, .prefix = 32};
        *destination = *source;
        memcpy(source->bytes, packet + IP_SOURCE_AT, 4);
        memcpy(destination->bytes, packet + IP_DESTINATION_AT, 4);
        return true;
}

/* The first source of a host, or the place where it would be. */
static size_t find_host(const struct rootless_vxlan_filter *filter, const struct rootless_vxlan_source *key) {
        size_t low = 0, high = filter->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare(&filter->sources[middle], key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

bool rootless_vxlan_filter_accepts(const struct rootless_vxlan_filter *filter, const struct nd_netlink_address *host,
                                   const void *bytes, size_t length) {
        struct rootless_vxlan_source key = {.host = *host};
        struct nd_netlink_address source, destination;

        if (!read_frame(bytes, length, filter->vni, &source, &destination) ||
            !rootless_peers_covers(&filter->pods, &destination))
                return false;
        for (size_t i = find_host(filter, &key); i < filter->count && compare(&filter->sources[i], &key) == 0; i++)
                if (rootless_peers_covers(&filter->sources[i].pods, &source))
                        return true;
        return false;
}
