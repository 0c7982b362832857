/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/sanitize.h"

#include <stdio.h>
#include <string.h>

void cli_sanitize_append(struct nd_text *out, const char *bytes, size_t length) {
        for (size_t i = 0, n; i < length; i += n > 0 ? n : 1) {
                uint32_t c = 0;

                n = nd_text_utf8_next(bytes + i, length - i, &c);
                if (n == 0 || (nd_text_is_control(c) && c != '\t'))
                        nd_text_add(out, "?");
                else
                        nd_text_append(out, bytes + i, n);
        }
}

char *cli_sanitize_text(const char *text) {
        size_t length = text ? strlen(text) : 0;
        struct nd_text out = ND_TEXT(length);

        cli_sanitize_append(&out, text, length);
        return length > 0 ? nd_text_steal(&out) : nd_strdup("");
}

int cli_sanitize_print_error(const char *command, const struct nd_error *error) {
        nd_autofree char *text = cli_sanitize_text(nd_error_text(error));

        fprintf(stderr, "nodens %s: %s\n", command, text);
        return 1;
}
