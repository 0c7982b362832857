/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-kubelet.c - any bytes as a kubelet's arguments give texts of at most their size, and as its
 * configuration values within bounds or an error. */
#include <string.h>
#include <unit/fuzz.h>

#include "cli/check/kubelet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(cli_kubelet_arguments_done) struct cli_kubelet_arguments found = {};
        nd_autoerror struct nd_error *error = nullptr;
        struct cli_kubelet_config config;

        cli_kubelet_arguments_parse((const char *) data, size, &found);
        fuzz_require(!found.config || strlen(found.config) <= size);
        fuzz_require(!found.endpoint || strlen(found.endpoint) <= size);
        cli_kubelet_config_init(&config);
        error = cli_kubelet_config_parse((const char *) data, size, &config);
        fuzz_require(strnlen(config.endpoint, KUBELET_ENDPOINT) < KUBELET_ENDPOINT);
        fuzz_require(strnlen(config.cgroup_driver, KUBELET_DRIVER) < KUBELET_DRIVER);
        fuzz_require(error ? !config.found : config.ids_per_pod % 65536 == 0);
        return 0;
}
