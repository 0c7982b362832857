/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-seccomp.c - any bytes as a seccomp profile; a converted profile is JSON and converts to
 * itself */
#include <unit/fuzz.h>

#include "base/json.h"
#include "oci/seccomp.h"

static void convert_again(const struct nd_text *once, const struct nd_seccomp_host *host) {
        nd_autotext struct nd_text twice = ND_TEXT(4 << 20);
        nd_autoerror struct nd_error *error = nullptr;

        if (once->length > ND_SECCOMP_CEILING)
                return;
        error = nd_seccomp_convert(once->bytes, once->length, host, &twice);
        fuzz_require(!error);
        fuzz_require(nd_streq(once->bytes, twice.bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct nd_seccomp_host host = {.architecture = "amd64", .capabilities = size, .kernel_major = 6, .kernel_minor = 1};
        nd_autotext struct nd_text text = ND_TEXT(4 << 20);
        nd_autoerror struct nd_error *error = nd_seccomp_convert((const char *) data, size, &host, &text);
        nd_autojson yyjson_doc *doc = nullptr;

        if (error)
                return 0;
        error = nd_json_parse(nd_text_get(&text), text.length, 4 << 20, &doc);
        fuzz_require(!error);
        convert_again(&text, &host);
        return 0;
}
