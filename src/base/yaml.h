/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - parses YAML into JSON values
 *
 * Users write configuration and manifests as YAML, programs as JSON. This parses the part of YAML
 * that Kubernetes files use and refuses the rest: tags, duplicate keys, several documents if one is
 * expected. Configuration has no anchors, aliases and merge keys either. Plain scalars become null,
 * true/false, integers and floats as in YAML 1.2; everything else is text, so that `no` and `0o7`
 * are strings. */
#pragma once

#include "base/json-lines.h"

enum {
        ND_YAML_NODES = 100000, /* maximum values in one document, aliases expanded */
};

/* An empty document gives null. Errors have the line. */
[[nodiscard]] struct nd_error *nd_yaml_parse(const char *bytes, size_t length, size_t ceiling, yyjson_doc **ret);

/* Calls the function for each member of a document that is a mapping, as configurations are; an
 * empty one has none. An error from the function ends the parsing. */
typedef struct nd_error *(*nd_yaml_member)(const char *key, yyjson_val *value, void *userdata);
[[nodiscard]] struct nd_error *nd_yaml_members(const char *bytes, size_t length, size_t ceiling, nd_yaml_member member,
                                               void *userdata);

/* Calls the function for each document of a stream, in order, with the line at which it begins. An
 * error from the function ends the parsing. */
[[nodiscard]] struct nd_error *nd_yaml_each(const char *bytes, size_t length, size_t ceiling,
                                            struct nd_error *(*take)(yyjson_doc *doc, size_t line, void *userdata),
                                            void *userdata);

/* One document of a stream of manifests, valid during the call. */
struct nd_yaml_manifest {
        yyjson_doc *doc;
        size_t line; /* at which it begins */
        const struct nd_json_lines *lines;
};

/* As above for manifests: aliases are expanded and merge keys merged as kubectl does it, to at most
 * ND_YAML_NODES values and ceiling bytes of text in one document; what exceeds this is refused
 * before it is made. */
[[nodiscard]] struct nd_error *nd_yaml_manifests(const char *bytes, size_t length, size_t ceiling,
                                                 struct nd_error *(*take)(const struct nd_yaml_manifest *manifest,
                                                                          void *userdata),
                                                 void *userdata);
