/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-certificates.c - any text as a hosts.toml gives names that are part of it. */
#include <string.h>
#include <unit/fuzz.h>

#include "cli/check/certificates.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *toml = nd_strndup((const char *) data, size);
        nd_cleanup(nd_strings_done) struct nd_strings named = {};

        cli_certificates_named(toml, &named);
        nd_vector_each (name, &named) {
                fuzz_require(strstr(toml, *name) && !strchr(*name, '\n'));
        }
        return 0;
}
