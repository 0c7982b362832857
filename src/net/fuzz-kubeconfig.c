/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted kubeconfig has a server, and a certificate only with its key. As a token, the input
 * either has a time at which it expires or has none. */
#include <string.h>

#include <unit/fuzz.h>

#include "net/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autoerror struct nd_error *error = nd_kubeconfig_parse((const char *) data, size, nullptr, &config);
        nd_autofree char *token = nd_strndup((const char *) data, size);

        (void) nd_kubeconfig_token_expiry(token);
        if (error) {
                fuzz_require(!config.server);
                return 0;
        }
        fuzz_require(config.server && strncmp(config.server, "http", 4) == 0);
        fuzz_require(strpbrk(config.server, " \r\n\t") == nullptr);
        fuzz_require((config.certificate || config.certificate_file) == (config.key || config.key_file));
        return 0;
}
