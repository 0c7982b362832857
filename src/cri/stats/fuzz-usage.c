/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-usage.c - parsers of the kernel's usage files: they never read past the text, and results
 * stay within their bounds */
#include <string.h>

#include <unit/fuzz.h>

#include "cri/stats/usage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);
        struct cri_network_usage network;
        struct cri_pressures pressures = {};
        struct cri_usage usage = {};

        if (cri_usage_parse_pressure(text, &pressures)) {
                fuzz_require(pressures.known && strncmp(text, "some ", 5) == 0);
                fuzz_require(pressures.some.average10 >= 0 && pressures.some.average10 < 1000);
                fuzz_require(pressures.full.total <= UINT64_MAX / 1000 * 1000);
        } else {
                fuzz_require(!pressures.known);
        }

        cri_usage_parse_devices(text, &usage);
        fuzz_require(usage.device_count <= USAGE_DEVICES);
        for (size_t i = 0; i < usage.device_count; i++) {
                const char *major = usage.devices[i].major, *minor = usage.devices[i].minor;

                fuzz_require(*major && *minor && strspn(major, "0123456789") == strlen(major));
                fuzz_require(strstr(text, major) && strstr(text, minor));
        }

        cri_usage_parse_network(text, &network);
        fuzz_require(network.count <= USAGE_INTERFACES);
        for (size_t i = 0; i < network.count; i++) {
                const char *name = network.interfaces[i].name;

                fuzz_require(memchr(name, '\0', USAGE_INTERFACE_NAME) && *name != '\0' && strcmp(name, "lo") != 0);
                fuzz_require(strstr(text, name) && !strpbrk(name, ":\n"));
        }
        return 0;
}
