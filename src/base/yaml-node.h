/* SPDX-License-Identifier: Apache-2.0 */
/* yaml-node.h - the nodes of one YAML document, for yaml.c and yaml-expand.c
 *
 * The parser makes a tree of nodes in which an alias is one more place of its anchor's node. An
 * alias is possible only after the end of its anchor, so there are no cycles, but the JSON document
 * can be exponentially larger than the tree: nd_yaml_expand() counts what it writes. */
#pragma once

#include "base/arena.h"
#include "base/json-lines.h"

enum nd_yaml_kind {
        ND_YAML_SCALAR,
        ND_YAML_LIST,
        ND_YAML_MAPPING,
};

struct nd_yaml_node;

/* A place of a node: an element of a list, a key or a value of a mapping. */
struct nd_yaml_place {
        struct nd_yaml_node *node;
        uint32_t line;
        bool alias;
        struct nd_yaml_place *next; /* in a mapping: key, value, key, value */
};

struct nd_yaml_node {
        enum nd_yaml_kind kind;
        bool plain;       /* a scalar without quotes */
        bool open;        /* its end was not read yet */
        bool merges;      /* a mapping with a merge key */
        const char *text; /* of a scalar */
        size_t length;
        struct nd_yaml_place *first, *last; /* of a list or a mapping */
};

/* A plain "<<" in a mapping, whose value's members become members of this one. */
bool nd_yaml_is_merge_key(const struct nd_yaml_node *node);

/* Makes the JSON document, with all aliases expanded and mappings merged. At most ND_YAML_NODES
 * values and ceiling bytes of text. lines may be nullptr. */
[[nodiscard]] struct nd_error *nd_yaml_expand(const struct nd_yaml_place *root, size_t ceiling, struct nd_json_lines *lines,
                                              yyjson_doc **ret);
