/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-resolv.c - the machine's resolv.conf: the node's has the helper as its only server, and no line that the machine's does not have */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "rootless/netplan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *machine = fuzz_text(data, size), *ours = nullptr;
        struct nd_netplan plan = {.driver = ND_NET_PASTA};
        struct nd_address address;
        char text[ND_ADDRESS_TEXT];

        fuzz_require(nd_address_parse("169.254.1.1", &plan.dns) == 0);
        ours = nd_netplan_resolv(&plan, machine);
        fuzz_require(nd_has_prefix(ours, "nameserver 169.254.1.1\n"));
        for (const char *line = ours; *line;) {
                size_t length = strcspn(line, "\n");

                fuzz_require(line[length] == '\n');
                fuzz_require(line == ours ||
                             (!nd_has_prefix(line, "nameserver") && memmem(machine, strlen(machine), line, length)));
                line += length + 1;
        }

        if (nd_address_parse(machine, &address) == 0) {
                struct nd_address again;

                fuzz_require(nd_address_parse(nd_address_text(&address, text), &again) == 0);
                again.prefix = address.prefix;
                fuzz_require(nd_address_equal(&address, &again) && address.prefix <= (address.family == AF_INET ? 32 : 128));
        }
        return 0;
}
