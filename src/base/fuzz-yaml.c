/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-yaml.c - a YAML document is a JSON document; and parsed as YAML, that JSON gives the same
 * again */
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

        /* Invalid UTF-8 is refused. Escaped, since YAML treats U+0085, U+2028 and U+2029 as line
         * breaks and JSON does not. */
        json = yyjson_write(doc, YYJSON_WRITE_ESCAPE_UNICODE, &length);
        fuzz_require(json);
        fuzz_require(!nd_json_parse(json, length, 64 * CEILING, &as_json));
        fuzz_require(yyjson_equals(yyjson_doc_get_root(doc), yyjson_doc_get_root(as_json)));

        /* libyaml refuses keys above 1,024 characters and some characters that JSON allows (DEL);
         * an accepted document must be the same. */
        refused = nd_yaml_parse(json, length, 64 * CEILING, &as_yaml);
        if (refused)
                return 0;
        json_again = yyjson_write(as_yaml, YYJSON_WRITE_ESCAPE_UNICODE, nullptr);
        fuzz_require(json_again && strcmp(json, json_again) == 0);
        return 0;
}
