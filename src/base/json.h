/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - bounded JSON reading over yyjson, and a writer
 *
 * Reading: a ceiling on bytes and on nesting, and errors that say where. yyjson's types stop at the module that decodes.
 * Writing: a streaming writer into a text; commas and indentation are its business, the caller only opens, names and closes. */
#pragma once

#include <yyjson.h>

#include "base/text.h"

enum {
        ND_JSON_DEPTH =
                64, /* nothing that the field writes is deeper; a reader that walks recursively stays within its stack */
};

static inline void nd_json_doc_done(yyjson_doc **doc) {
        yyjson_doc_free(*doc);
        *doc = nullptr;
}

#define nd_autojson nd_cleanup(nd_json_doc_done)

/* Strict JSON of at most ceiling bytes. The message of an error is what is wrong and where, without a file name. */
[[nodiscard]] struct nd_error *nd_json_parse(const char *bytes, size_t length, size_t ceiling, yyjson_doc **ret);

/* A streaming writer. indent 0 writes one line. Strings that are not UTF-8 are cleaned (U+FFFD), never refused. */
struct nd_json_out {
        struct nd_text *text;
        int indent;
        int depth;
        bool first; /* nothing yet in the innermost object or array */
};

void nd_json_open(struct nd_json_out *out, const char *key, char bracket); /* bracket is '{' or '['; key nullptr in arrays */
void nd_json_close(struct nd_json_out *out, char bracket);                 /* '}' or ']' */
void nd_json_string(struct nd_json_out *out, const char *key, const char *value); /* nullptr writes null */
void nd_json_number(struct nd_json_out *out, const char *key, uint64_t value);
void nd_json_signed(struct nd_json_out *out, const char *key, int64_t value);
void nd_json_bool(struct nd_json_out *out, const char *key, bool value);
void nd_json_raw(struct nd_json_out *out, const char *key, const char *json); /* a finished value, put in as it is */
