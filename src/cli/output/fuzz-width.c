/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-width.c - any bytes as a table's cell have no control character and fit into any width. */
#include <unit/fuzz.h>

#include <locale.h>
#include <string.h>

#include "base/text.h"
#include "cli/output/width.h"

static void require_printable(const char *text) {
        fuzz_require(nd_text_utf8_valid(text, strlen(text)));
        for (; *text; text++)
                fuzz_require((unsigned char) *text >= ' ' || *text == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *given = nullptr, *clean = nullptr, *line = nullptr, *shortened = nullptr, *wrapped = nullptr;
        size_t columns = size > 0 ? data[0] % 80 : 0;

        (void) setlocale(LC_ALL, size > 0 && data[0] >= 0x80 ? "C" : "C.UTF-8");
        given = nd_strndup((const char *) data, size);
        clean = cli_width_clean(given, true);
        line = cli_width_clean(given, false);
        shortened = cli_width_shorten(line, columns);
        wrapped = cli_width_wrap(clean, columns > 1 ? columns : 2);
        require_printable(clean);
        require_printable(shortened);
        fuzz_require(cli_width_of(shortened) <= columns);
        fuzz_require(cli_width_of(wrapped) <= (columns > 1 ? columns : 2));
        return 0;
}
