/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of OpenShift's constraints: what comes out is JSON, and every object that is left out is
 * reported. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/json.h"
#include "guard/install/scc-import.h"

enum {
        OUTPUT_BYTES = 1 << 20,
};

static void on_report(size_t line, const char *text, void *userdata) {
        size_t *reports = userdata;

        (void) line;
        fuzz_require(*text);
        (*reports)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autotext struct nd_text text = ND_TEXT(OUTPUT_BYTES);
        size_t reports = 0;
        struct guard_import import = {.group = "security.nodens.io", .report = on_report, .userdata = &reports};
        nd_autoerror struct nd_error *error = guard_import_read(&import, (const char *) data, size, &text);

        fuzz_require(import.left_out + import.invalid <= reports);
        if (error)
                return 0;
        fuzz_require((import.imported > 0) == (text.length > 0));
        for (const char *at = nd_text_get(&text); *at;) {
                const char *end = strstr(at, "\n---\n");
                size_t length = end ? (size_t) (end - at) : strlen(at);
                nd_autoerror struct nd_error *broken = nullptr;
                nd_autojson yyjson_doc *doc = nullptr;

                broken = nd_json_parse(at, length, OUTPUT_BYTES, &doc);
                fuzz_require(!broken);
                at = end ? end + strlen("\n---\n") : "";
        }
        return 0;
}
