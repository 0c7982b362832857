/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <string.h>

#include "base/assert.h"

/* Deepest nesting of brackets outside of strings; works on any bytes, valid JSON or not. */
static size_t nesting(const char *bytes, size_t length) {
        size_t depth = 0, deepest = 0;
        bool in_string = false;

        for (size_t i = 0; i < length; i++) {
                char c = bytes[i];

                if (in_string) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                in_string = false;
                } else if (c == '"') {
                        in_string = true;
                } else if (c == '{' || c == '[') {
                        if (++depth > deepest)
                                deepest = depth;
                } else if ((c == '}' || c == ']') && depth > 0) {
                        depth--;
                }
        }
        return deepest;
}

struct nd_error *nd_json_parse(const char *bytes, size_t length, size_t ceiling, yyjson_doc **ret) {
        yyjson_read_err problem = {};
        yyjson_doc *doc;
        size_t line, column, character;

        if (length > ceiling)
                return nd_error_new(ND_INVALID, 0, "%zu bytes of JSON, at most %zu are read", length, ceiling);
        if (nesting(bytes, length) > ND_JSON_DEPTH)
                return nd_error_new(ND_INVALID, 0, "JSON nested deeper than %d", ND_JSON_DEPTH);

        /* Without YYJSON_READ_INSITU the bytes are not modified; yyjson's interface requires the
         * cast. */
        doc = yyjson_read_opts((char *) bytes, length, YYJSON_READ_NOFLAG, nullptr, &problem);
        if (!doc) {
                if (!yyjson_locate_pos(bytes, length, problem.pos, &line, &column, &character))
                        return nd_error_new(ND_INVALID, 0, "%s", problem.msg);
                return nd_error_new(ND_INVALID, 0, "%s at line %zu, column %zu", problem.msg, line, column);
        }
        *ret = doc;
        return nullptr;
}

const char *nd_json_text(yyjson_val *object, const char *key) {
        const char *value = yyjson_get_str(yyjson_obj_get(object, key));

        return value ? value : "";
}

char *nd_json_copy(yyjson_val *object, const char *key) {
        return nd_strdup(nd_json_text(object, key));
}

static void start_item(struct nd_json_out *out) {
        if (out->depth == 0)
                return;
        if (!out->first)
                nd_text_add(out->text, ",");
        if (out->indent > 0)
                nd_text_addf(out->text, "\n%*s", out->depth * out->indent, "");
        else if (!out->first)
                nd_text_add(out->text, " ");
        out->first = false;
}

static void add_string(struct nd_text *text, const char *value) {
        size_t length = strlen(value);

        nd_text_add(text, "\"");
        for (size_t i = 0, n; i < length; i += n) {
                uint32_t c = '?'; /* of invalid UTF-8, which is replaced below */

                n = nd_text_utf8_next(value + i, length - i, &c);
                n = n > 0 ? n : 1;
                if (c == '"' || c == '\\')
                        nd_text_addf(text, "\\%c", (char) c);
                else if (nd_text_is_control(c))
                        nd_text_addf(text, "\\u%04x", c);
                else
                        nd_text_add_utf8(text, value + i, n);
        }
        nd_text_add(text, "\"");
}

static void start_member(struct nd_json_out *out, const char *key) {
        start_item(out);
        if (!key)
                return;
        add_string(out->text, key);
        nd_text_add(out->text, ": ");
}

void nd_json_open(struct nd_json_out *out, const char *key, char bracket) {
        start_member(out, key);
        nd_text_append(out->text, &bracket, 1);
        out->depth++;
        out->first = true;
}

void nd_json_close(struct nd_json_out *out, char bracket) {
        nd_assert(out->depth > 0);
        out->depth--;
        if (out->indent > 0 && !out->first)
                nd_text_addf(out->text, "\n%*s", out->depth * out->indent, "");
        nd_text_append(out->text, &bracket, 1);
        out->first = false;
}

void nd_json_string(struct nd_json_out *out, const char *key, const char *value) {
        start_member(out, key);
        if (value)
                add_string(out->text, value);
        else
                nd_text_add(out->text, "null");
}

void nd_json_number(struct nd_json_out *out, const char *key, uint64_t value) {
        start_member(out, key);
        nd_text_addf(out->text, "%llu", (unsigned long long) value);
}

void nd_json_signed(struct nd_json_out *out, const char *key, int64_t value) {
        start_member(out, key);
        nd_text_addf(out->text, "%lld", (long long) value);
}

void nd_json_raw(struct nd_json_out *out, const char *key, const char *json) {
        start_member(out, key);
        nd_text_add(out->text, json);
}

void nd_json_bool(struct nd_json_out *out, const char *key, bool value) {
        start_member(out, key);
        nd_text_add(out->text, value ? "true" : "false");
}
