/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/map.h"
#include "base/yaml-node.h"

/* One open collection, and the keys of a mapping so far. */
struct level {
        struct nd_yaml_node *node;
        struct nd_map keys;
        bool value_follows; /* of the last key */
};

struct reader {
        yaml_parser_t parser;
        size_t ceiling;
        bool manifests; /* anchors, aliases and merge keys are allowed */
        /* Both nullptr: one document is expected. */
        struct nd_error *(*take)(yyjson_doc *doc, size_t line, void *userdata);
        struct nd_error *(*take_manifest)(const struct nd_yaml_manifest *manifest, void *userdata);
        void *userdata;

        /* the document */
        size_t line; /* where it begins */
        struct nd_arena arena;
        struct nd_map anchors; /* name -> node */
        struct nd_yaml_place *root;
        struct level levels[ND_JSON_DEPTH];
        size_t depth;
        size_t nodes;
        yyjson_doc *doc; /* the one that is expected */
};

static void clear_document(struct reader *r) {
        while (r->depth > 0)
                nd_map_done(&r->levels[--r->depth].keys);
        nd_map_done(&r->anchors);
        nd_arena_reset(&r->arena);
        r->root = nullptr;
        r->nodes = 0;
}

static void reader_done(struct reader *r) {
        clear_document(r);
        nd_arena_done(&r->arena);
        yyjson_doc_free(r->doc);
        yaml_parser_delete(&r->parser);
}

static void event_done(yaml_event_t *event) {
        yaml_event_delete(event);
}

static struct nd_error *refuse(const yaml_event_t *event, const char *what) {
        return nd_error_new(ND_INVALID, 0, "line %zu: %s", event->start_mark.line + 1, what);
}

/* For texts with a name from the file, which may be long. */
static struct nd_error *refuse_name(const yaml_event_t *event, const char *before, const char *name, const char *after) {
        return nd_error_new(ND_INVALID, 0, "line %zu: %s '%.100s' %s", event->start_mark.line + 1, before, name, after);
}

/* ---- the tree ---- */

static struct nd_error *append(struct reader *r, const yaml_event_t *event, struct nd_yaml_node *node) {
        struct nd_yaml_place *place = nd_arena_new(&r->arena, struct nd_yaml_place);
        struct nd_yaml_node *parent = r->depth > 0 ? r->levels[r->depth - 1].node : nullptr;

        if (++r->nodes > 2 * ND_YAML_NODES)
                return refuse(event, "too many values in one document");
        *place = (struct nd_yaml_place) {
                .node = node, .line = (uint32_t) event->start_mark.line + 1, .alias = event->type == YAML_ALIAS_EVENT};
        if (!parent)
                r->root = place;
        else if (parent->last)
                parent->last->next = place;
        else
                parent->first = place;
        if (parent)
                parent->last = place;
        return nullptr;
}

/* In a mapping, keys and values alternate. */
static bool is_key(const struct reader *r) {
        const struct level *top = r->depth > 0 ? &r->levels[r->depth - 1] : nullptr;

        return top && top->node->kind == ND_YAML_MAPPING && !top->value_follows;
}

static struct nd_error *take_key(struct reader *r, const yaml_event_t *event, struct nd_yaml_node *node) {
        struct level *top = &r->levels[r->depth - 1];

        if (node->kind != ND_YAML_SCALAR)
                return refuse(event, "a key must be plain text");
        if (strlen(node->text) != node->length)
                return refuse(event, "a key has a null byte");
        if (nd_yaml_is_merge_key(node) && !r->manifests)
                return refuse(event, "merge keys ('<<') are not supported");
        if (nd_yaml_is_merge_key(node))
                top->node->merges = true;
        else if (nd_map_has(&top->keys, node->text))
                return refuse_name(event, "key", node->text, "appears a second time");
        else
                (void) nd_map_put(&top->keys, node->text, nullptr);
        top->value_follows = true;
        return append(r, event, node);
}

/* Puts a node in its place: the root, a list, a key or the value of the last key. */
static struct nd_error *put(struct reader *r, const yaml_event_t *event, struct nd_yaml_node *node) {
        if (is_key(r))
                return take_key(r, event, node);
        if (r->depth > 0)
                r->levels[r->depth - 1].value_follows = false;
        return append(r, event, node);
}

static struct nd_error *check_tag(const yaml_event_t *event, const char *tag) {
        return tag ? refuse(event, "tags ('!') are not supported") : nullptr;
}

static struct nd_error *take_anchor(struct reader *r, const yaml_event_t *event, const yaml_char_t *anchor,
                                    struct nd_yaml_node *node) {
        if (!anchor)
                return nullptr;
        if (!r->manifests)
                return refuse(event, "anchors ('&') are not supported");
        (void) nd_map_put(&r->anchors, (const char *) anchor, node);
        return nullptr;
}

static struct nd_error *take_alias(struct reader *r, const yaml_event_t *event) {
        const char *name = (const char *) event->data.alias.anchor;
        struct nd_yaml_node *node = nd_map_get(&r->anchors, name);

        if (!r->manifests)
                return refuse(event, "aliases ('*') are not supported");
        if (!node)
                return refuse_name(event, "alias", name, "has no anchor above it");
        if (node->open)
                return refuse_name(event, "alias", name, "is inside of its own anchor");
        return put(r, event, node);
}

static struct nd_error *take_scalar(struct reader *r, const yaml_event_t *event) {
        struct nd_yaml_node *node = nd_arena_new(&r->arena, struct nd_yaml_node);
        const char *text = (const char *) event->data.scalar.value;

        *node = (struct nd_yaml_node) {.kind = ND_YAML_SCALAR,
                                       .plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
                                       .text = nd_arena_copy(&r->arena, text, event->data.scalar.length),
                                       .length = event->data.scalar.length};
        nd_try(check_tag(event, (const char *) event->data.scalar.tag));
        nd_try(take_anchor(r, event, event->data.scalar.anchor, node));
        return put(r, event, node);
}

static struct nd_error *open_level(struct reader *r, const yaml_event_t *event, enum nd_yaml_kind kind,
                                   const yaml_char_t *anchor, const yaml_char_t *tag) {
        struct nd_yaml_node *node = nd_arena_new(&r->arena, struct nd_yaml_node);

        *node = (struct nd_yaml_node) {.kind = kind, .open = true};
        nd_try(check_tag(event, (const char *) tag));
        nd_try(take_anchor(r, event, anchor, node));
        if (r->depth == ND_JSON_DEPTH)
                return refuse(event, "nested too deep");
        nd_try(put(r, event, node));
        r->levels[r->depth++] = (struct level) {.node = node};
        return nullptr;
}

/* Also of merges that another one overrides: kubectl refuses them, too. It takes no alias of a
 * list, so each list is looked at once. */
static struct nd_error *check_merge(const struct nd_yaml_place *value) {
        bool good = value->node->kind == ND_YAML_MAPPING || (value->node->kind == ND_YAML_LIST && !value->alias);

        for (const struct nd_yaml_place *item = good && value->node->kind == ND_YAML_LIST ? value->node->first : nullptr; item;
             item = item->next)
                good &= item->node->kind == ND_YAML_MAPPING;
        return good ? nullptr
                    : nd_error_new(ND_INVALID, 0, "line %u: a merge key ('<<') needs a mapping or a list of mappings",
                                   (unsigned) value->line);
}

static struct nd_error *close_level(struct reader *r) {
        struct level *top = &r->levels[--r->depth];

        top->node->open = false;
        nd_map_done(&top->keys);
        if (!top->node->merges)
                return nullptr;
        for (const struct nd_yaml_place *key = top->node->first; key; key = key->next->next)
                if (nd_yaml_is_merge_key(key->node))
                        nd_try(check_merge(key->next));
        return nullptr;
}

/* ---- documents ---- */

static struct nd_error *end_document(struct reader *r) {
        nd_cleanup(nd_json_lines_done) struct nd_json_lines lines = {};
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_yaml_expand(r->root, r->ceiling, r->manifests ? &lines : nullptr, &doc));
        clear_document(r);
        if (r->take)
                return r->take(doc, r->line, r->userdata);
        if (r->take_manifest)
                return r->take_manifest(&(struct nd_yaml_manifest) {.doc = doc, .line = r->line, .lines = &lines},
                                        r->userdata);
        r->doc = nd_take_ptr(doc);
        return nullptr;
}

static struct nd_error *begin_document(struct reader *r, const yaml_event_t *event) {
        if (r->doc)
                return refuse(event, "a second document, but one is expected");
        r->line = event->end_mark.line + (event->data.document_start.implicit ? 1 : 2);
        return nullptr;
}

static struct nd_error *take_event(struct reader *r, const yaml_event_t *event) {
        switch (event->type) {
        case YAML_ALIAS_EVENT:
                return take_alias(r, event);
        case YAML_DOCUMENT_START_EVENT:
                return begin_document(r, event);
        case YAML_DOCUMENT_END_EVENT:
                return end_document(r);
        case YAML_SCALAR_EVENT:
                return take_scalar(r, event);
        case YAML_SEQUENCE_START_EVENT:
                return open_level(r, event, ND_YAML_LIST, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        case YAML_MAPPING_START_EVENT:
                return open_level(r, event, ND_YAML_MAPPING, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                return close_level(r);
        default:
                return nullptr;
        }
}

/* Bytes that are not text have an offset and no mark. */
static size_t problem_line(const yaml_parser_t *parser, const char *bytes, size_t length) {
        size_t line = 1;

        if (parser->error != YAML_READER_ERROR)
                return parser->problem_mark.line + 1;
        for (size_t i = 0; i < length && i < parser->problem_offset; i++)
                line += bytes[i] == '\n';
        return line;
}

static struct nd_error *read_stream(struct reader *r, const char *bytes, size_t length) {
        if (length > r->ceiling)
                return nd_error_new(ND_INVALID, 0, "%zu bytes of YAML, at most %zu are read", length, r->ceiling);
        if (!yaml_parser_initialize(&r->parser))
                return nd_error_new(ND_EXHAUSTED, ENOMEM, "start the YAML reader");
        yaml_parser_set_input_string(&r->parser, (const unsigned char *) bytes, length);

        for (bool more = true; more;) {
                nd_cleanup(event_done) yaml_event_t event = {};

                if (!yaml_parser_parse(&r->parser, &event))
                        return nd_error_new(ND_INVALID, 0, "line %zu: %s", problem_line(&r->parser, bytes, length),
                                            r->parser.problem ?: "not YAML");
                nd_try(take_event(r, &event));
                more = event.type != YAML_STREAM_END_EVENT;
        }
        return nullptr;
}

struct nd_error *nd_yaml_parse(const char *bytes, size_t length, size_t ceiling, yyjson_doc **ret) {
        nd_cleanup(reader_done) struct reader r = {.ceiling = ceiling};

        nd_try(read_stream(&r, bytes, length));
        if (!r.doc)
                return nd_yaml_expand(nullptr, ceiling, nullptr, ret);
        *ret = nd_take_ptr(r.doc);
        return nullptr;
}

struct nd_error *nd_yaml_each(const char *bytes, size_t length, size_t ceiling,
                              struct nd_error *(*take)(yyjson_doc *doc, size_t line, void *userdata), void *userdata) {
        nd_cleanup(reader_done) struct reader r = {.ceiling = ceiling, .take = take, .userdata = userdata};

        return read_stream(&r, bytes, length);
}

struct nd_error *nd_yaml_manifests(const char *bytes, size_t length, size_t ceiling,
                                   struct nd_error *(*take)(const struct nd_yaml_manifest *manifest, void *userdata),
                                   void *userdata) {
        nd_cleanup(reader_done) struct reader r = {
                .ceiling = ceiling, .manifests = true, .take_manifest = take, .userdata = userdata};

        return read_stream(&r, bytes, length);
}

struct nd_error *nd_yaml_members(const char *bytes, size_t length, size_t ceiling, nd_yaml_member member, void *userdata) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_obj_iter members;
        yyjson_val *root, *key;

        nd_try(nd_yaml_parse(bytes, length, ceiling, &doc));
        root = yyjson_doc_get_root(doc);
        if (yyjson_is_null(root))
                return nullptr;
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "not a list of keys and values");
        members = yyjson_obj_iter_with(root);
        while ((key = yyjson_obj_iter_next(&members)))
                nd_try(member(unsafe_yyjson_get_str(key), yyjson_obj_iter_get_val(key), userdata));
        return nullptr;
}
