/* SPDX-License-Identifier: Apache-2.0 */
/* Any text: an error, or a reference whose canonical text parses to itself and has no "..". */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "oci/reference.h"

static void is_canonical(const struct nd_reference *reference) {
        nd_cleanup(nd_reference_done) struct nd_reference again = {};
        nd_autofree char *text = nd_reference_text(reference), *text_again = nullptr;
        nd_autoerror struct nd_error *error = nd_reference_parse(text, &again);

        fuzz_require(!error);
        text_again = nd_reference_text(&again);
        fuzz_require(nd_streq(text, text_again));
        /* Two dots inside a tag are harmless. */
        fuzz_require(!strstr(text, "/.") && !strstr(text, "./"));
        fuzz_require(!strpbrk(text, "?#%\\ \t\r\n\""));
        fuzz_require(nd_digest_is_set(&reference->digest) != (reference->tag != nullptr));
        fuzz_require(strlen(text) <= ND_REFERENCE_TEXT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(nd_reference_done) struct nd_reference reference = {};
        nd_autofree char *text = fuzz_text(data, size);
        nd_autoerror struct nd_error *error = nd_reference_parse(text, &reference);
        const char *hex;

        if (!error)
                is_canonical(&reference);
        if (nd_reference_is_id(text, &hex))
                fuzz_require(strspn(hex, "0123456789abcdef") == strlen(hex));
        return 0;
}
