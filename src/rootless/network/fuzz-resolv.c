/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-resolv.c - the host's resolv.conf: the node's has the helper as its only server, and no line
 * that the host's does not have. The same bytes are parsed as LXC's list of bridges */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "rootless/network/lxc-user-nic.h"

static bool is_mine(const char *who, [[maybe_unused]] void *userdata) {
        return who[0] != '#';
}

/* On a bridge: only servers that other hosts can reach, at least one, and no line that the host's
 * does not have. */
static void on_a_bridge(const char *machine) {
        struct rootless_netplan plan = {.driver = NET_DRIVER_LXC};
        nd_autofree char *ours = nullptr;
        char bridge[NET_LINK_BYTES];

        fuzz_require(nd_netlink_address_parse("10.0.3.1", &plan.gateways[0]) == 0);
        ours = rootless_netplan_resolv_conf(&plan, machine);
        fuzz_require(nd_has_prefix(ours, "nameserver"));
        for (const char *line = ours; *line;) {
                size_t length = strcspn(line, "\n");

                fuzz_require(line[length] == '\n' && !nd_has_prefix(line, "nameserver 127."));
                fuzz_require(nd_has_prefix(line, "nameserver 10.0.3.1\n") || memmem(machine, strlen(machine), line, length));
                line += length + 1;
        }
        if (rootless_lxc_usernet_parse(machine, is_mine, nullptr, bridge))
                fuzz_require(strlen(bridge) > 0 && strlen(bridge) < NET_LINK_BYTES && !strpbrk(bridge, "/ \t\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *machine = fuzz_text(data, size), *ours = nullptr;
        struct rootless_netplan plan = {.driver = NET_DRIVER_PASTA};
        struct nd_netlink_address address;
        char text[ND_ADDRESS_TEXT];

        fuzz_require(nd_netlink_address_parse("169.254.1.1", &plan.dns) == 0);
        ours = rootless_netplan_resolv_conf(&plan, machine);
        fuzz_require(nd_has_prefix(ours, "nameserver 169.254.1.1\n"));
        for (const char *line = ours; *line;) {
                size_t length = strcspn(line, "\n");

                fuzz_require(line[length] == '\n');
                fuzz_require(line == ours ||
                             (!nd_has_prefix(line, "nameserver") && memmem(machine, strlen(machine), line, length)));
                line += length + 1;
        }

        on_a_bridge(machine);

        if (nd_netlink_address_parse(machine, &address) == 0) {
                struct nd_netlink_address again;

                fuzz_require(nd_netlink_address_parse(nd_netlink_address_text(&address, text), &again) == 0);
                again.prefix = address.prefix;
                fuzz_require(nd_netlink_address_equal(&address, &again) &&
                             address.prefix <= (address.family == AF_INET ? 32 : 128));
        }
        return 0;
}
