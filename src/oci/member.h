/* SPDX-License-Identifier: Apache-2.0 */
/* member.h - members of JSON objects that a stranger wrote
 *
 * A member that is absent or null gives nullptr or 0; one of another type, too long, with a null byte inside or given twice is an
 * error. Twice, because two readers of one document could each take another one for the truth. Results point into the document. */
#pragma once

#include "base/json.h"
#include "base/vector.h"

[[nodiscard]] struct nd_error *nd_member_text(yyjson_val *object, const char *key, size_t ceiling, const char **ret);
[[nodiscard]] struct nd_error *nd_member_object(yyjson_val *object, const char *key, yyjson_val **ret);
[[nodiscard]] struct nd_error *nd_member_array(yyjson_val *object, const char *key, size_t ceiling, yyjson_val **ret);
[[nodiscard]] struct nd_error *nd_member_number(yyjson_val *object, const char *key, uint64_t ceiling, uint64_t *ret);
[[nodiscard]] struct nd_error *nd_member_bool(yyjson_val *object, const char *key, bool *ret);

/* A string value on its own: what for nd_member_text() is the member. name is for the message. */
[[nodiscard]] struct nd_error *nd_value_text(yyjson_val *value, const char *name, size_t ceiling, const char **ret);

/* Strings that somebody owns. */
typedef nd_vector(char *) nd_strings;
void nd_strings_done(nd_strings *strings);
void nd_strings_add(nd_strings *strings, const char *text); /* a copy */
[[nodiscard]] bool nd_strings_have(const nd_strings *strings, const char *text);

/* An array of strings, each of at most length_ceiling bytes. */
[[nodiscard]] struct nd_error *nd_member_strings(yyjson_val *object, const char *key, size_t count_ceiling,
                                                 size_t length_ceiling, nd_strings *ret);
