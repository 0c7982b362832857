/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-manifests.c - a stream of manifests with anchors, aliases and merge keys: each document is
 * bounded, is a JSON document, and each of its values has a line of the input; without anchors it
 * is the same as for a parser that refuses them. A JSON text has a line for each value, too. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/yaml.h"

enum { CEILING = 1 << 16 };

struct seen {
        size_t lines; /* of the input */
        yyjson_doc *first;
        size_t count;
};

static struct nd_error *take(const struct nd_yaml_manifest *manifest, void *userdata) {
        size_t values = yyjson_doc_get_val_count(manifest->doc), length;
        nd_autofree char *json = yyjson_write(manifest->doc, YYJSON_WRITE_NOFLAG, &length);
        struct seen *seen = userdata;

        fuzz_require(json && values > 0);
        fuzz_require(values <= 2 * ND_YAML_NODES + 1);
        /* an empty document has a value, but no text */
        fuzz_require(manifest->lines->lines.count == values || (values == 1 && manifest->lines->lines.count == 0));
        nd_vector_each (line, &manifest->lines->lines)
                fuzz_require(*line >= 1 && *line <= seen->lines);
        fuzz_require(manifest->line >= 1 && manifest->line <= seen->lines + 1);
        if (seen->count++ == 0)
                seen->first = yyjson_read(json, length, YYJSON_READ_NOFLAG);
        return nullptr;
}

static bool same(yyjson_doc *a, yyjson_doc *b) {
        nd_autofree char *x = yyjson_write(a, YYJSON_WRITE_NOFLAG, nullptr),
                         *y = yyjson_write(b, YYJSON_WRITE_NOFLAG, nullptr);

        return x && y && strcmp(x, y) == 0;
}

static size_t count_lines(const uint8_t *data, size_t size) {
        size_t lines = 2; /* an empty value at the end is on the next line */

        /* libyaml also breaks lines at \r, U+0085, U+2028 and U+2029 */
        for (size_t i = 0; i < size; i++)
                lines += data[i] == '\n' || data[i] == '\r' || data[i] >= 0x80 || data[i] == 0x20;
        return lines;
}

static void compare_json(const char *text, size_t size) {
        nd_cleanup(nd_json_lines_done) struct nd_json_lines lines = {};
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;

        error = nd_json_parse(text, size, CEILING, &doc);
        if (error)
                return;
        nd_json_lines_scan(text, size, &lines);
        fuzz_require(lines.lines.count == yyjson_doc_get_val_count(doc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct seen seen = {.lines = count_lines(data, size)};
        nd_autoerror struct nd_error *error = nullptr, *refused = nullptr;
        nd_autojson yyjson_doc *plain = nullptr;

        error = nd_yaml_manifests((const char *) data, size, CEILING, take, &seen);
        fuzz_require(!error || nd_error_code(error) == ND_INVALID);
        refused = nd_yaml_parse((const char *) data, size, CEILING, &plain);
        if (!refused) {
                fuzz_require(!error && seen.count <= 1);
                fuzz_require(seen.count == 0 || same(seen.first, plain));
        }
        compare_json((const char *) data, size);
        yyjson_doc_free(seen.first);
        return 0;
}
