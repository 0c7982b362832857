/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-vxlan-filter.c - the first line is a filter, the rest a datagram of each of its hosts; an
 * accepted one has the addresses that the filter allows */
#include <string.h>

#include <unit/fuzz.h>

#include "rootless/network/vxlan-filter.h"

static void try_datagram(const struct rootless_vxlan_filter *filter, const struct nd_netlink_address *host,
                         const uint8_t *bytes, size_t length) {
        struct nd_netlink_address source = {.family = AF_INET, .prefix = 32}, destination = source;
        bool allowed = false;

        if (!rootless_vxlan_filter_accepts(filter, host, bytes, length))
                return;
        fuzz_require(length >= 42);
        memcpy(source.bytes, bytes + 34, 4);
        memcpy(destination.bytes, bytes + 38, 4);
        fuzz_require(rootless_peers_covers(&filter->pods, &destination));
        for (size_t i = 0; i < filter->count; i++)
                allowed = allowed || (nd_netlink_address_equal(&filter->sources[i].host, host) &&
                                      rootless_peers_covers(&filter->sources[i].pods, &source));
        fuzz_require(allowed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t first = end ? (size_t) (end - data) : size;
        nd_autofree char *text = fuzz_text(data, first);
        struct rootless_vxlan_filter *filter = nullptr;
        nd_autoerror struct nd_error *error = rootless_vxlan_filter_parse(text, &filter);

        if (error)
                return 0;
        for (size_t i = 0; end && i < filter->count && i < 8; i++)
                try_datagram(filter, &filter->sources[i].host, end + 1, size - first - 1);
        rootless_vxlan_filter_free(filter);
        return 0;
}
