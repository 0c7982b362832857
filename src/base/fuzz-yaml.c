/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-yaml.c - a YAML document is a JSON document; and read as YAML, that JSON is the same once more */
#include <string.h>

#include <unit/fuzz.h>

#include "base/yaml.h"

enum { CEILING = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autoerror struct nd_error *error = nullptr, *refused = nullptr;
        nd_autofree char *json = nullptr, *json_again = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autojson yyjson_doc *as_json = nullptr;
        nd_autojson yyjson_doc *as_yaml = nullptr;
        size_t length;

        error = nd_yaml_parse((const char *) data, size, CEILING, &doc);
        fuzz_require(!error == (doc != nullptr));
        if (error) {
                fuzz_require(nd_error_code(error) == ND_INVALID);
                return 0;
        }

        /* It refuses what is not UTF-8. Escaped, since YAML takes U+0085, U+2028 and U+2029 for line breaks and JSON does not. */
        json = yyjson_write(doc, YYJSON_WRITE_ESCAPE_UNICODE, &length);
        fuzz_require(json);
        fuzz_require(!nd_json_parse(json, length, 64 * CEILING, &as_json));
        fuzz_require(yyjson_equals(yyjson_doc_get_root(doc), yyjson_doc_get_root(as_json)));

        /* libyaml refuses keys above 1,024 characters and some that JSON has as they are (DEL); what it reads must be the same. */
        refused = nd_yaml_parse(json, length, 64 * CEILING, &as_yaml);
        if (refused)
                return 0;
        json_again = yyjson_write(as_yaml, YYJSON_WRITE_ESCAPE_UNICODE, nullptr);
        fuzz_require(json_again && strcmp(json, json_again) == 0);
        return 0;
}
