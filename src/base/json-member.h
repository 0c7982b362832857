/* SPDX-License-Identifier: Apache-2.0 */
/* json-member.h - reads members of JSON objects from untrusted input
 *
 * A member that is absent or null gives nullptr or 0; one of another type, too long, with a null
 * byte inside or given twice is an error. Twice, because two parsers of one document could each use
 * another one. Results point into the document. */
#pragma once

#include "base/json.h"
#include "base/strings.h"

[[nodiscard]] struct nd_error *nd_json_member_text(yyjson_val *object, const char *key, size_t ceiling, const char **ret);
[[nodiscard]] struct nd_error *nd_json_member_object(yyjson_val *object, const char *key, yyjson_val **ret);
[[nodiscard]] struct nd_error *nd_json_member_array(yyjson_val *object, const char *key, size_t ceiling, yyjson_val **ret);
[[nodiscard]] struct nd_error *nd_json_member_number(yyjson_val *object, const char *key, uint64_t ceiling, uint64_t *ret);
[[nodiscard]] struct nd_error *nd_json_member_bool(yyjson_val *object, const char *key, bool *ret);

/* A string value on its own, with the checks of nd_json_member_text(). name is for the message. */
[[nodiscard]] struct nd_error *nd_json_value_text(yyjson_val *value, const char *name, size_t ceiling, const char **ret);

/* An array of strings, each of at most length_ceiling bytes. */
[[nodiscard]] struct nd_error *nd_json_member_strings(yyjson_val *object, const char *key, size_t count_ceiling,
                                                      size_t length_ceiling, struct nd_strings *ret);
