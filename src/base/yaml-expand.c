/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/map.h"
#include "base/yaml-node.h"
#include "base/yaml.h"

struct expansion {
        yyjson_mut_doc *doc;
        struct nd_json_lines *lines; /* nullptr: not wanted */
        size_t values;
        size_t bytes;
        size_t ceiling;
};

static void expansion_done(struct expansion *e) {
        yyjson_mut_doc_free(e->doc);
}

static struct nd_error *refuse(const struct nd_yaml_place *place, const char *what) {
        return nd_error_new(ND_INVALID, 0, "line %u: %s", (unsigned) place->line, what);
}

static struct nd_error *count_text(struct expansion *e, const struct nd_yaml_place *place) {
        e->bytes += place->node->length;
        if (e->bytes > e->ceiling)
                return refuse(place, "too much text in one document, after aliases are expanded");
        return nullptr;
}

/* Each value that is written, and each member that is looked at for a merge. */
static struct nd_error *count(struct expansion *e, const struct nd_yaml_place *place) {
        if (++e->values > ND_YAML_NODES)
                return refuse(place, "too many values in one document, after aliases are expanded");
        return count_text(e, place);
}

static void note_line(struct expansion *e, const struct nd_yaml_place *place) {
        if (e->lines)
                nd_vector_push(&e->lines->lines, place->line);
}

/* ---- scalars ---- */

static bool one_of(const char *text, const char *const *words, size_t words_count) {
        for (size_t i = 0; i < words_count; i++)
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

static yyjson_mut_val *scalar_value(yyjson_mut_doc *doc, const struct nd_yaml_node *node) {
        static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
        static const char *const trues[] = {"true", "True", "TRUE"};
        static const char *const falses[] = {"false", "False", "FALSE"};
        yyjson_mut_val *number;

        if (!node->plain || strlen(node->text) != node->length)
                return yyjson_mut_strn(doc, node->text, node->length);
        if (one_of(node->text, nulls, nd_count_of(nulls)))
                return yyjson_mut_null(doc);
        if (one_of(node->text, trues, nd_count_of(trues)))
                return yyjson_mut_bool(doc, true);
        if (one_of(node->text, falses, nd_count_of(falses)))
                return yyjson_mut_bool(doc, false);
        number = number_or_null(doc, node->text, node->length);
        return number ? number : yyjson_mut_strn(doc, node->text, node->length);
}

/* ---- merge keys ---- */

bool nd_yaml_is_merge_key(const struct nd_yaml_node *node) {
        return node->kind == ND_YAML_SCALAR && node->plain && nd_streq(node->text, "<<");
}

/* The members of a mapping after its merges, in the order of their first appearance. */
struct member {
        const struct nd_yaml_place *key, *value;
};

struct members {
        nd_vector(struct member) items;
        struct nd_map numbers; /* key -> its number, from 1 */
};

static void members_done(struct members *members) {
        nd_vector_done(&members->items);
        nd_map_done(&members->numbers);
}

static void set_member(struct members *members, const struct nd_yaml_place *key) {
        struct member member = {.key = key, .value = key->next};
        uintptr_t number = (uintptr_t) nd_map_get(&members->numbers, key->node->text);

        if (number > 0) {
                members->items.items[number - 1] = member;
                return;
        }
        nd_vector_push(&members->items, member);
        (void) nd_map_put(&members->numbers, key->node->text, (void *) (uintptr_t) members->items.count);
}

static struct nd_error *collect(struct expansion *e, const struct nd_yaml_place *mapping, size_t depth,
                                struct members *members);

/* Of several mappings the first one wins, so it is taken last. */
static struct nd_error *merge_list(struct expansion *e, const struct nd_yaml_place *list, size_t depth,
                                   struct members *members) {
        nd_vector(const struct nd_yaml_place *) sources = {};
        struct nd_error *error = nullptr;

        for (const struct nd_yaml_place *source = list->node->first; source; source = source->next)
                nd_vector_push(&sources, source);
        for (size_t i = sources.count; i-- > 0 && !error;)
                error = collect(e, sources.items[i], depth, members);
        nd_vector_done(&sources);
        return error;
}

/* kubectl's rule, which differs from the specification of merge keys: what comes later in the
 * mapping wins, also a merge over a key above it. */
static struct nd_error *collect(struct expansion *e, const struct nd_yaml_place *mapping, size_t depth,
                                struct members *members) {
        nd_try(count(e, mapping));
        if (depth > ND_JSON_DEPTH)
                return refuse(mapping, "nested too deep");
        for (const struct nd_yaml_place *key = mapping->node->first; key; key = key->next->next) {
                nd_try(count(e, key));
                if (!nd_yaml_is_merge_key(key->node))
                        set_member(members, key);
                else if (key->next->node->kind == ND_YAML_LIST)
                        nd_try(merge_list(e, key->next, depth + 1, members));
                else
                        nd_try(collect(e, key->next, depth + 1, members));
        }
        return nullptr;
}

/* ---- values ---- */

static struct nd_error *expand(struct expansion *e, const struct nd_yaml_place *place, size_t depth, yyjson_mut_val **ret);

static struct nd_error *expand_list(struct expansion *e, const struct nd_yaml_place *list, size_t depth,
                                    yyjson_mut_val *into) {
        for (const struct nd_yaml_place *item = list->node->first; item; item = item->next) {
                yyjson_mut_val *value;

                nd_try(expand(e, item, depth, &value));
                yyjson_mut_arr_append(into, value);
        }
        return nullptr;
}

static struct nd_error *expand_member(struct expansion *e, const struct nd_yaml_place *key, const struct nd_yaml_place *value,
                                      size_t depth, yyjson_mut_val *into) {
        yyjson_mut_val *json;

        nd_try(count_text(e, key));
        note_line(e, key);
        nd_try(expand(e, value, depth, &json));
        yyjson_mut_obj_add(into, yyjson_mut_strn(e->doc, key->node->text, key->node->length), json);
        return nullptr;
}

static struct nd_error *expand_merged(struct expansion *e, const struct nd_yaml_place *mapping, size_t depth,
                                      yyjson_mut_val *into) {
        nd_cleanup(members_done) struct members members = {};

        nd_try(collect(e, mapping, depth, &members));
        nd_vector_each (member, &members.items)
                nd_try(expand_member(e, member->key, member->value, depth, into));
        return nullptr;
}

static struct nd_error *expand_mapping(struct expansion *e, const struct nd_yaml_place *mapping, size_t depth,
                                       yyjson_mut_val *into) {
        if (mapping->node->merges)
                return expand_merged(e, mapping, depth, into);
        for (const struct nd_yaml_place *key = mapping->node->first; key; key = key->next->next)
                nd_try(expand_member(e, key, key->next, depth, into));
        return nullptr;
}

/* depth is the number of collections around the value. */
static struct nd_error *expand(struct expansion *e, const struct nd_yaml_place *place, size_t depth, yyjson_mut_val **ret) {
        nd_try(count(e, place));
        note_line(e, place);
        if (place->node->kind == ND_YAML_SCALAR) {
                *ret = scalar_value(e->doc, place->node);
                return nullptr;
        }
        if (depth == ND_JSON_DEPTH)
                return refuse(place, "nested too deep");
        if (place->node->kind == ND_YAML_LIST) {
                *ret = yyjson_mut_arr(e->doc);
                return expand_list(e, place, depth + 1, *ret);
        }
        *ret = yyjson_mut_obj(e->doc);
        return expand_mapping(e, place, depth + 1, *ret);
}

struct nd_error *nd_yaml_expand(const struct nd_yaml_place *root, size_t ceiling, struct nd_json_lines *lines,
                                yyjson_doc **ret) {
        nd_cleanup(expansion_done) struct expansion e = {
                .lines = lines, .ceiling = ceiling, .doc = yyjson_mut_doc_new(nullptr)};
        yyjson_mut_val *value;

        if (!e.doc)
                return nd_error_new(ND_EXHAUSTED, ENOMEM, "make the JSON document");
        value = yyjson_mut_null(e.doc);
        if (root)
                nd_try(expand(&e, root, 0, &value));
        yyjson_mut_doc_set_root(e.doc, value);
        *ret = yyjson_mut_doc_imut_copy(e.doc, nullptr);
        return *ret ? nullptr : nd_error_new(ND_EXHAUSTED, ENOMEM, "copy the YAML document");
}
