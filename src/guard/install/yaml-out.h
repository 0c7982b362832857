/* SPDX-License-Identifier: Apache-2.0 */
/* yaml-out.h - a stream of JSON documents as YAML that a person can review
 *
 * Mappings are blocks, and so are texts of several lines. A list of scalars, and a mapping in a
 * list, is one line if it fits. Strings are quoted unless every version of YAML reads them as
 * strings. */
#pragma once

#include "base/text.h"

void guard_yaml_out_write(const char *documents, struct nd_text *text);
