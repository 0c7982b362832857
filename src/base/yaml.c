/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/map.h"

/* One open collection, the key that waits for its value, and the keys so far: yyjson's objects are
 * lists, and looking for a duplicate in one makes a large mapping take quadratic time. */
struct level {
        yyjson_mut_val *value;
        yyjson_mut_val *key;
        struct nd_map keys;
};

struct reader {
        yaml_parser_t parser;
        yyjson_mut_doc *doc;
        struct level levels[ND_JSON_DEPTH];
        size_t depth;
        size_t nodes;
        bool complete;
        /* Where the document begins. */
        size_t line;
        /* Nullptr: one document is expected. */
        struct nd_error *(*take)(yyjson_doc *doc, size_t line, void *userdata);
        void *userdata;
};

static void reader_done(struct reader *r) {
        while (r->depth > 0)
                nd_map_done(&r->levels[--r->depth].keys);
        yyjson_mut_doc_free(r->doc);
        yaml_parser_delete(&r->parser);
}

static void event_done(yaml_event_t *event) {
        yaml_event_delete(event);
}

static struct nd_error *refuse(const yaml_event_t *event, const char *what) {
        return nd_error_new(ND_INVALID, 0, "line %zu: %s", event->start_mark.line + 1, what);
}

static bool one_of(const char *text, const char *const *words, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(text, words[i]))
                        return true;
        return false;
}

/* A plain scalar spelled like a JSON number is one: yyjson decides, so both formats have the same
 * numbers. */
static yyjson_mut_val *number_or_null(yyjson_mut_doc *doc, const char *text, size_t length) {
        yyjson_mut_val *value = nullptr;
        nd_autojson yyjson_doc *number = nullptr;

        if (length == 0 || !strchr("-0123456789", text[0]))
                return nullptr;
        number = yyjson_read(text, length, YYJSON_READ_NOFLAG);
        if (number && yyjson_is_num(yyjson_doc_get_root(number)))
                value = yyjson_val_mut_copy(doc, yyjson_doc_get_root(number));
        return value;
}

static yyjson_mut_val *scalar_value(yyjson_mut_doc *doc, const yaml_event_t *event) {
        static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
        static const char *const trues[] = {"true", "True", "TRUE"};
        static const char *const falses[] = {"false", "False", "FALSE"};
        const char *text = (const char *) event->data.scalar.value;
        size_t length = event->data.scalar.length;
        yyjson_mut_val *number;

        if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || strlen(text) != length)
                return yyjson_mut_strncpy(doc, text, length);
        if (one_of(text, nulls, nd_count_of(nulls)))
                return yyjson_mut_null(doc);
        if (one_of(text, trues, nd_count_of(trues)))
                return yyjson_mut_bool(doc, true);
        if (one_of(text, falses, nd_count_of(falses)))
                return yyjson_mut_bool(doc, false);
        number = number_or_null(doc, text, length);
        return number ? number : yyjson_mut_strncpy(doc, text, length);
}

/* Puts a finished or just opened value in its place: the root, an array, or the waiting key. */
static struct nd_error *place(struct reader *r, const yaml_event_t *event, yyjson_mut_val *value) {
        struct level *top;

        if (++r->nodes > ND_YAML_NODES)
                return refuse(event, "too many values in one document");
        if (r->depth == 0) {
                yyjson_mut_doc_set_root(r->doc, value);
                return nullptr;
        }
        top = &r->levels[r->depth - 1];
        if (yyjson_mut_is_arr(top->value)) {
                yyjson_mut_arr_append(top->value, value);
                return nullptr;
        }
        if (top->key) {
                yyjson_mut_obj_add(top->value, top->key, value);
                top->key = nullptr;
                return nullptr;
        }
        return refuse(event, "a key must be plain text");
}

static struct nd_error *take_scalar(struct reader *r, const yaml_event_t *event) {
        struct level *top = r->depth > 0 ? &r->levels[r->depth - 1] : nullptr;
        const char *text = (const char *) event->data.scalar.value;
        size_t length = event->data.scalar.length;

        if (!top || !yyjson_mut_is_obj(top->value) || top->key)
                return place(r, event, scalar_value(r->doc, event));

        if (nd_streq(text, "<<") && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
                return refuse(event, "merge keys ('<<') are not supported");
        if (strlen(text) != length)
                return refuse(event, "a key has a null byte");
        if (nd_map_has(&top->keys, text))
                return nd_error_new(ND_INVALID, 0, "line %zu: key '%.*s' appears a second time", event->start_mark.line + 1,
                                    (int) (length < 100 ? length : 100), text);
        (void) nd_map_put(&top->keys, text, nullptr);
        top->key = yyjson_mut_strncpy(r->doc, text, length);
        return nullptr;
}

static struct nd_error *open_level(struct reader *r, const yaml_event_t *event, yyjson_mut_val *value) {
        if (r->depth == ND_JSON_DEPTH)
                return refuse(event, "nested too deep");
        nd_try(place(r, event, value));
        r->levels[r->depth++] = (struct level) {.value = value};
        return nullptr;
}

static bool has_anchor_or_tag(const yaml_event_t *event) {
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                return event->data.scalar.anchor || event->data.scalar.tag;
        case YAML_SEQUENCE_START_EVENT:
                return event->data.sequence_start.anchor || event->data.sequence_start.tag;
        case YAML_MAPPING_START_EVENT:
                return event->data.mapping_start.anchor || event->data.mapping_start.tag;
        default:
                return false;
        }
}

/* Converts the values read so far to an immutable document. */
static struct nd_error *keep(struct reader *r, yyjson_doc **ret) {
        if (!yyjson_mut_doc_get_root(r->doc))
                yyjson_mut_doc_set_root(r->doc, yyjson_mut_null(r->doc));
        *ret = yyjson_mut_doc_imut_copy(r->doc, nullptr);
        return *ret ? nullptr : nd_error_new(ND_EXHAUSTED, ENOMEM, "copy the YAML document");
}

static struct nd_error *end_document(struct reader *r) {
        nd_autojson yyjson_doc *doc = nullptr;

        r->complete = true;
        if (!r->take)
                return nullptr;
        nd_try(keep(r, &doc));
        yyjson_mut_doc_free(r->doc);
        r->nodes = 0;
        r->doc = yyjson_mut_doc_new(nullptr);
        if (!r->doc)
                return nd_error_new(ND_EXHAUSTED, ENOMEM, "start the next YAML document");
        return r->take(doc, r->line, r->userdata);
}

static struct nd_error *begin_document(struct reader *r, const yaml_event_t *event) {
        if (r->complete && !r->take)
                return refuse(event, "a second document, but one is expected");
        r->line = event->end_mark.line + (event->data.document_start.implicit ? 1 : 2);
        return nullptr;
}

static struct nd_error *take_event(struct reader *r, const yaml_event_t *event) {
        if (has_anchor_or_tag(event))
                return refuse(event, "anchors and tags ('&', '!') are not supported");

        switch (event->type) {
        case YAML_ALIAS_EVENT:
                return refuse(event, "aliases ('*') are not supported");
        case YAML_DOCUMENT_START_EVENT:
                return begin_document(r, event);
        case YAML_DOCUMENT_END_EVENT:
                return end_document(r);
        case YAML_SCALAR_EVENT:
                return take_scalar(r, event);
        case YAML_SEQUENCE_START_EVENT:
                return open_level(r, event, yyjson_mut_arr(r->doc));
        case YAML_MAPPING_START_EVENT:
                return open_level(r, event, yyjson_mut_obj(r->doc));
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                nd_map_done(&r->levels[--r->depth].keys);
                return nullptr;
        default:
                return nullptr;
        }
}

static struct nd_error *read_stream(struct reader *r, const char *bytes, size_t length, size_t ceiling) {
        if (length > ceiling)
                return nd_error_new(ND_INVALID, 0, "%zu bytes of YAML, at most %zu are read", length, ceiling);
        r->doc = yyjson_mut_doc_new(nullptr);
        if (!r->doc || !yaml_parser_initialize(&r->parser))
                return nd_error_new(ND_EXHAUSTED, ENOMEM, "start the YAML reader");
        yaml_parser_set_input_string(&r->parser, (const unsigned char *) bytes, length);

        for (bool more = true; more;) {
                nd_cleanup(event_done) yaml_event_t event = {};

                if (!yaml_parser_parse(&r->parser, &event))
                        return nd_error_new(ND_INVALID, 0, "line %zu: %s", r->parser.problem_mark.line + 1,
                                            r->parser.problem ?: "not YAML");
                nd_try(take_event(r, &event));
                more = event.type != YAML_STREAM_END_EVENT;
        }
        return nullptr;
}

struct nd_error *nd_yaml_parse(const char *bytes, size_t length, size_t ceiling, yyjson_doc **ret) {
        nd_cleanup(reader_done) struct reader r = {};

        nd_try(read_stream(&r, bytes, length, ceiling));
        return keep(&r, ret);
}

struct nd_error *nd_yaml_each(const char *bytes, size_t length, size_t ceiling,
                              struct nd_error *(*take)(yyjson_doc *doc, size_t line, void *userdata), void *userdata) {
        nd_cleanup(reader_done) struct reader r = {.take = take, .userdata = userdata};

        return read_stream(&r, bytes, length, ceiling);
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
