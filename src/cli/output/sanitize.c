/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/sanitize.h"

#include <stdio.h>
#include <string.h>

/* C1 control characters, U+0080 to U+009F: some terminals interpret them like escape sequences. */
static bool is_high_control(const char *bytes, size_t length) {
        return length == 2 && (unsigned char) bytes[0] == 0xc2 && (unsigned char) bytes[1] < 0xa0;
}

/* U+202A to U+202E and U+2066 to U+2069 reorder the text after them: a name or a log line would
 * read differently from what it is. */
static bool is_reordering(const char *bytes, size_t length) {
        unsigned char last = length == 3 ? (unsigned char) bytes[2] : 0;

        return (last >= 0xaa && last <= 0xae && memcmp(bytes, "\xe2\x80", 2) == 0) ||
               (last >= 0xa6 && last <= 0xa9 && memcmp(bytes, "\xe2\x81", 2) == 0);
}

void cli_sanitize_append(struct nd_text *out, const char *bytes, size_t length) {
        for (size_t i = 0, n; i < length; i += n > 0 ? n : 1) {
                unsigned char c = (unsigned char) bytes[i];

                n = nd_text_utf8_length(bytes + i, length - i);
                if (n == 0 || (c < ' ' && c != '\t') || c == 0x7f || is_high_control(bytes + i, n) ||
                    is_reordering(bytes + i, n))
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
