/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - bounded JSON parsing over yyjson, and a writer
 *
 * Parsing: limits on size and nesting, and errors with line and column. yyjson's types stop at the
 * module that decodes.
 * Writing: a streaming writer into a text; it adds commas and indentation, the caller only opens,
 * names and closes. */
#pragma once

#include <yyjson.h>

#include "base/text.h"

enum {
        /* Kubernetes' objects are less deep; a recursive walk stays within its stack. */
        ND_JSON_DEPTH = 64,
};

static inline void nd_json_doc_done(yyjson_doc **doc) {
        yyjson_doc_free(*doc);
        *doc = nullptr;
}

#define nd_autojson nd_cleanup(nd_json_doc_done)

/* Strict JSON of at most ceiling bytes. The error has what is wrong and where, without a file
 * name. */
[[nodiscard]] struct nd_error *nd_json_parse(const char *bytes, size_t length, size_t ceiling, yyjson_doc **ret);

/* The text of a member; "" if it has none. */
[[nodiscard]] const char *nd_json_text(yyjson_val *object, const char *key);
/* A copy of it. */
[[nodiscard]] char *nd_json_copy(yyjson_val *object, const char *key);

/* A streaming writer. indent 0 writes one line. Invalid UTF-8 in strings is replaced (U+FFFD),
 * never refused. Characters that a terminal would act upon (nd_text_is_control()) are written as \u
 * escapes: people read JSON on terminals, too. */
struct nd_json_out {
        struct nd_text *text;
        int indent;
        int depth;
        bool first; /* the innermost object or array is empty */
};

/* Bracket is '{' or '['; key nullptr in arrays. */
void nd_json_open(struct nd_json_out *out, const char *key, char bracket);
void nd_json_close(struct nd_json_out *out, char bracket); /* '}' or ']' */
/* Nullptr writes null. */
void nd_json_string(struct nd_json_out *out, const char *key, const char *value);
void nd_json_number(struct nd_json_out *out, const char *key, uint64_t value);
void nd_json_signed(struct nd_json_out *out, const char *key, int64_t value);
void nd_json_bool(struct nd_json_out *out, const char *key, bool value);
/* A complete value, inserted unchanged. */
void nd_json_raw(struct nd_json_out *out, const char *key, const char *json);
