/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-destination.c - no request reaches the loopback or the host, in no form of an IPv6 address;
 * lists of ports */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "net/broker.h"
#include "rootless/broker/destination.h"

static bool is_local_v4(const uint8_t *bytes) {
        static const uint8_t own[] = {10, 77, 0, 2};

        return bytes[0] == 127 || bytes[0] == 0 || (bytes[0] == 169 && bytes[1] == 254) || bytes[0] >= 224 ||
               memcmp(bytes, own, sizeof own) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, nat64[12] = {0x00, 0x64, 0xff, 0x9b};
        struct nd_netlink_link_address one = {.link = 2};
        struct nd_netlink_link_addresses own = {.items = &one, .count = 1};
        struct rootless_broker_ports ports = {.items = {443}, .count = 1}, parsed = {};
        nd_autofree char *text = fuzz_text(data, size);
        nd_autoerror struct nd_error *error = rootless_broker_ports_parse(text, &parsed);
        struct nd_broker_request request = {};
        struct nd_netlink_address to = {};

        fuzz_require(error || (parsed.count > 0 && parsed.count <= BROKER_PORTS));
        fuzz_require(nd_netlink_address_parse("10.77.0.2/24", &one.address) == 0);
        if (size < sizeof request)
                return 0;
        memcpy(&request, data, sizeof request);
        to.family = request.family;
        memcpy(to.bytes, request.address, sizeof to.bytes);
        if (rootless_broker_refusal(&ports, &own, &to, request.port))
                return 0;
        fuzz_require(request.port == 443 && (to.family == AF_INET || to.family == AF_INET6));
        if (to.family == AF_INET)
                fuzz_require(!is_local_v4(to.bytes));
        else
                fuzz_require(!(memcmp(to.bytes, mapped, sizeof mapped) == 0 && is_local_v4(to.bytes + 12)) &&
                             !(memcmp(to.bytes, nat64, sizeof nat64) == 0 && is_local_v4(to.bytes + 12)) &&
                             to.bytes[0] != 0xff && !IN6_IS_ADDR_LOOPBACK(&to.v6) && !IN6_IS_ADDR_UNSPECIFIED(&to.v6) &&
                             !IN6_IS_ADDR_LINKLOCAL(&to.v6));
        return 0;
}
