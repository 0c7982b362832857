/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-json.c - a parsed document that our writer writes parses to the same; the writer's output is
 * always JSON */
#include <string.h>

#include <unit/fuzz.h>

#include "base/json.h"

enum { CEILING = 1 << 20 };

/* Writes a value with our writer. Its strings end at a null byte and numbers are unsigned: false
 * for other values. */
static bool write_value(struct nd_json_out *out, const char *key, yyjson_val *value) {
        yyjson_obj_iter members = yyjson_obj_iter_with(value);
        yyjson_arr_iter items = yyjson_arr_iter_with(value);
        yyjson_val *item;

        switch (yyjson_get_type(value)) {
        case YYJSON_TYPE_NULL:
                nd_json_string(out, key, nullptr);
                return true;
        case YYJSON_TYPE_BOOL:
                nd_json_bool(out, key, yyjson_get_bool(value));
                return true;
        case YYJSON_TYPE_NUM:
                nd_json_number(out, key, yyjson_get_uint(value));
                return yyjson_is_uint(value);
        case YYJSON_TYPE_STR:
                nd_json_string(out, key, yyjson_get_str(value));
                return strlen(yyjson_get_str(value)) == yyjson_get_len(value);
        case YYJSON_TYPE_ARR:
                nd_json_open(out, key, '[');
                while ((item = yyjson_arr_iter_next(&items)))
                        if (!write_value(out, nullptr, item))
                                return false;
                nd_json_close(out, ']');
                return true;
        default:
                nd_json_open(out, key, '{');
                while ((item = yyjson_obj_iter_next(&members))) {
                        if (strlen(yyjson_get_str(item)) != yyjson_get_len(item) ||
                            !write_value(out, yyjson_get_str(item), yyjson_obj_iter_get_val(item)))
                                return false;
                }
                nd_json_close(out, '}');
                return true;
        }
}

static void write_and_compare(yyjson_doc *doc, int indent) {
        nd_autotext struct nd_text text = ND_TEXT(64 * CEILING);
        struct nd_json_out out = {.text = &text, .indent = indent};
        nd_autojson yyjson_doc *again = nullptr;

        if (!write_value(&out, nullptr, yyjson_doc_get_root(doc)))
                return;
        fuzz_require(!text.overflow);
        fuzz_require(!nd_json_parse(nd_text_get(&text), text.length, 64 * CEILING, &again));
        /* Comparing objects sees only the first of several equal keys; comparing texts is
         * stricter. */
        {
                nd_autofree char *a = yyjson_write(doc, 0, nullptr), *b = yyjson_write(again, 0, nullptr);

                fuzz_require(a && b && strcmp(a, b) == 0);
        }
}

/* Any bytes, as one of our strings. */
static void write_bytes(const char *bytes) {
        nd_autotext struct nd_text text = ND_TEXT(64 * CEILING);
        struct nd_json_out out = {.text = &text};
        nd_autojson yyjson_doc *doc = nullptr;

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, bytes, bytes);
        nd_json_close(&out, '}');
        fuzz_require(!nd_json_parse(nd_text_get(&text), text.length, 64 * CEILING, &doc));
        if (nd_text_utf8_valid(bytes, strlen(bytes)))
                fuzz_require(nd_streq(yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), bytes)), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;

        error = nd_json_parse((const char *) data, size, CEILING, &doc);
        fuzz_require(!error == (doc != nullptr));
        if (doc) {
                write_and_compare(doc, 0);
                write_and_compare(doc, 2);
        }
        write_bytes(text);
        return 0;
}
