/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a watch give the same events whole and in pieces, whose size is the first byte; pages
 * and error responses are parsed as they are. */
#include <string.h>

#include <unit/fuzz.h>

#include "net/api-objects.h"

static struct nd_error *note(enum nd_api_event event, yyjson_val *object, void *userdata) {
        nd_text_addf(userdata, "%d %s/%s@%s;", (int) event, nd_api_namespace(object), nd_api_name(object),
                     nd_api_version(object));
        return nullptr;
}

static void feed(const char *bytes, size_t length, size_t piece, struct nd_text *seen) {
        nd_cleanup(nd_api_lines_done) struct nd_api_lines lines = {.take = note, .userdata = seen};
        nd_autoerror struct nd_error *error = nullptr;

        for (size_t at = 0; at < length && !error; at += piece)
                error = nd_api_lines_feed(&lines, bytes + at, length - at < piece ? length - at : piece);
        nd_text_add(seen, nd_error_text(error));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autotext struct nd_text whole = ND_TEXT(1 << 20), pieces = ND_TEXT(1 << 20);
        nd_cleanup(nd_api_page_done) struct nd_api_page page = {};
        nd_autoerror struct nd_error *error = nullptr, *refusal = nullptr;
        const char *bytes = (const char *) data + 1;

        if (size < 2)
                return 0;
        feed(bytes, size - 1, size - 1, &whole);
        feed(bytes, size - 1, data[0] % 31 + 1, &pieces);
        fuzz_require(strcmp(nd_text_get(&whole), nd_text_get(&pieces)) == 0);
        error = nd_api_page_parse(bytes, size - 1, &page);
        fuzz_require(error || (page.version && page.continuation));
        refusal = nd_api_refusal(500, bytes, size - 1);
        fuzz_require(refusal != nullptr);
        return 0;
}
