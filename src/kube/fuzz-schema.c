/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-schema.c - the fields of any JSON object: the unknown ones are keys of it, and have a path;
 * a field that is suggested is known */
#include <string.h>

#include <unit/fuzz.h>

#include "kube/schema.h"

enum { CEILING = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const kinds[] = {"Pod", "Deployment", "CronJob", "Container", "PodSpec", "Volume"};
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;

        error = nd_json_parse((const char *) data, size, CEILING, &doc);
        for (size_t i = 0; !error && i < nd_count_of(kinds); i++) {
                nd_autoarena struct nd_arena arena = {};
                struct nd_schema_unknowns unknowns = {}, none = {};
                size_t count = nd_schema_check(kinds[i], yyjson_doc_get_root(doc), &arena, &unknowns);

                fuzz_require(unknowns.items.count == (count < ND_SCHEMA_UNKNOWN ? count : ND_SCHEMA_UNKNOWN));
                nd_vector_each (unknown, &unknowns.items) {
                        nd_autofree char *json =
                                nd_format("{\"%.*s\": 0}", (int) strcspn(unknown->suggestion, "."), unknown->suggestion);
                        nd_autojson yyjson_doc *known = yyjson_read(json, strlen(json), YYJSON_READ_NOFLAG);

                        fuzz_require(yyjson_is_str(unknown->key) && unknown->type[0] != '\0');
                        fuzz_require(strlen(unknown->path) <= 4096);
                        fuzz_require(unknown->suggestion[0] == '\0' ||
                                     nd_schema_check(unknown->type, yyjson_doc_get_root(known), &arena, &none) == 0);
                }
                nd_vector_done(&unknowns.items);
        }
        return 0;
}
