/* SPDX-License-Identifier: Apache-2.0 */
/* json-lines.h - the line of each value of a JSON document in the text that it was read from
 *
 * yyjson keeps a document's values, keys included, in one array, in the order of the text. So one
 * number per value, in the same order, is enough. */
#pragma once

#include <stdint.h>

#include "base/json.h"
#include "base/vector.h"

/* Zero-initialised is empty: all lines are 0. */
struct nd_json_lines {
        nd_vector(uint32_t) lines;
};

void nd_json_lines_done(struct nd_json_lines *lines);

/* The lines of a text that nd_json_parse() has accepted. */
void nd_json_lines_scan(const char *bytes, size_t length, struct nd_json_lines *lines);

/* The line of a value or a key of the document, counted from 1; 0 if it is unknown. */
size_t nd_json_lines_of(const struct nd_json_lines *lines, yyjson_doc *doc, yyjson_val *value);
