/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-lines.h"

void nd_json_lines_done(struct nd_json_lines *lines) {
        nd_vector_done(&lines->lines);
}

static size_t skip_string(const char *bytes, size_t length, size_t at) {
        for (at++; at < length && bytes[at] != '"'; at++)
                if (bytes[at] == '\\')
                        at++;
        return at;
}

/* Numbers and words: up to what ends a value. */
static size_t skip_word(const char *bytes, size_t length, size_t at) {
        while (at + 1 < length && !memchr(",:]} \t\r\n", bytes[at + 1], 9))
                at++;
        return at;
}

void nd_json_lines_scan(const char *bytes, size_t length, struct nd_json_lines *lines) {
        uint32_t line = 1;

        for (size_t i = 0; i < length; i++) {
                char c = bytes[i];

                if (c == '\n')
                        line++;
                if (memchr(",:]} \t\r\n", c, 9))
                        continue;
                nd_vector_push(&lines->lines, line);
                if (c == '"')
                        i = skip_string(bytes, length, i);
                else if (c != '{' && c != '[')
                        i = skip_word(bytes, length, i);
        }
}

size_t nd_json_lines_of(const struct nd_json_lines *lines, yyjson_doc *doc, yyjson_val *value) {
        size_t number = (size_t) (value - yyjson_doc_get_root(doc));

        return number < lines->lines.count ? lines->lines.items[number] : 0;
}
