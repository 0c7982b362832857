/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - one YAML document as JSON values
 *
 * Configuration and manifests are YAML for people and JSON for programs. This reads the part of YAML that Kubernetes files
 * use and refuses what makes YAML dangerous: anchors and aliases (bombs), tags, merge keys, duplicate keys, several documents
 * where one is expected. Plain scalars become null, true/false, integers and floats as in YAML 1.2; everything else is text,
 * so that `no` and `0o7` are strings and never surprise. */
#pragma once

#include "base/json.h"

enum {
        ND_YAML_NODES = 100000, /* values in one document */
};

/* An empty document reads as null. Errors say the line. */
[[nodiscard]] struct nd_error *nd_yaml_parse(const char *bytes, size_t length, size_t ceiling, yyjson_doc **ret);

/* The members of a document that is a list of keys and values, as configurations are; an empty one has none. What the function returns ends the reading. */
typedef struct nd_error *(*nd_yaml_member)(const char *key, yyjson_val *value, void *userdata);
[[nodiscard]] struct nd_error *nd_yaml_members(const char *bytes, size_t length, size_t ceiling, nd_yaml_member member,
                                               void *userdata);

/* All documents of a stream, in order, with the line at which each begins. What the function returns ends the reading. */
[[nodiscard]] struct nd_error *nd_yaml_each(const char *bytes, size_t length, size_t ceiling,
                                            struct nd_error *(*take)(yyjson_doc *doc, size_t line, void *userdata),
                                            void *userdata);
