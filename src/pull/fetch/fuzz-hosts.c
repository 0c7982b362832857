/* SPDX-License-Identifier: Apache-2.0 */
/* Any hosts.toml gives an error, or servers with http(s) addresses without user or line break, one
 * of which is the registry. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "pull/fetch/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(pull_hosts_done) struct pull_hosts hosts = {};
        nd_autoerror struct nd_error *error =
                pull_hosts_parse((const char *) data, size, "registry.example:5000", "/d", &hosts);

        if (error)
                return 0;
        size_t upstream = 0;

        fuzz_require(hosts.count >= 1 && hosts.count <= HOSTS_MAX);
        nd_vector_each (host, &hosts) {
                upstream += host->upstream;
                fuzz_require(nd_has_prefix(host->url, "https://") || nd_has_prefix(host->url, "http://"));
                fuzz_require(!strpbrk(host->url, "?# \r\n\t"));
                fuzz_require(!strpbrk(host->authority, "@/?# \r\n\t"));
                fuzz_require(host->client.count % 2 == 0);
                nd_vector_each (header, &host->headers) {
                        fuzz_require(!strpbrk(*header, "\r\n"));
                }
        }
        fuzz_require(upstream == 1);
        return 0;
}
