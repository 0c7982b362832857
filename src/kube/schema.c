/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/schema.h"

#include <string.h>

#include "base/assert.h"
#include "base/distance.h"
#include "kube/place.h"
#include "kube/schema-table.h"

enum {
        NAME_LENGTH = 64, /* of fields, and of keys for which a near one is sought */
        PATH_LENGTH = 4096,
};

/* ---- the table ---- */

struct field {
        const char *name;
        size_t length;
        const char *type; /* nullptr: the value has no fields */
        size_t type_length;
};

/* Reads the field at *fields and moves past it; false at the end. */
static bool next_field(const char **fields, struct field *ret) {
        const char *at = *fields;
        size_t length, name;

        nd_assert(at);
        length = strcspn(at, " ");
        name = strcspn(at, "= ");
        if (length == 0)
                return false;
        *ret = (struct field) {.name = at, .length = name};
        if (name < length) {
                ret->type = at + name + 1;
                ret->type_length = length - name - 1;
        }
        *fields = at + length + (at[length] == ' ');
        return true;
}

/* The fields of a type; nullptr if it is unknown. */
static const char *fields_of(const char *type, size_t length) {
        size_t low = 0, high = nd_count_of(nd_schema_table);

        while (low < high) {
                size_t middle = (low + high) / 2;
                int order = strncmp(nd_schema_table[middle].name, type, length);

                if (order == 0 && nd_schema_table[middle].name[length] == '\0')
                        return nd_schema_table[middle].fields;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return nullptr;
}

static bool find_field(const char *fields, const char *name, size_t length, struct field *ret) {
        nd_assert(name);
        while (next_field(&fields, ret))
                if (ret->length == length && memcmp(ret->name, name, length) == 0)
                        return true;
        return false;
}

/* ---- the nearest field ---- */

static unsigned distance(const char *key, size_t length, const struct field *field) {
        unsigned row[ND_DISTANCE_MOST + 1];

        nd_distance(key, length, field->name, field->length, true, row);
        return row[field->length];
}

/* The nearest field of a type that is less than *most away, which becomes its distance. */
static bool find_nearest(const char *fields, const char *key, size_t length, size_t *most, struct field *ret) {
        struct field field;
        bool found = false;

        while (next_field(&fields, &field)) {
                size_t d = field.length <= NAME_LENGTH ? distance(key, length, &field) : SIZE_MAX;

                if (d >= *most)
                        continue;
                *ret = field;
                *most = d;
                found = true;
        }
        return found;
}

/* A field of an object below this one: "privileged" of a container is one of its
 * securityContext. */
static const char *suggest_below(const char *fields, const char *key, size_t length, struct nd_arena *arena) {
        struct field field, below;
        size_t most = length / 5 + 1;
        const char *best = "";

        while (next_field(&fields, &field))
                if (field.type && find_nearest(fields_of(field.type, field.type_length), key, length, &most, &below))
                        best = nd_arena_format(arena, "%.*s.%.*s", (int) field.length, field.name, (int) below.length,
                                               below.name);
        return best;
}

static const char *suggest(const char *fields, const char *key, size_t length, struct nd_arena *arena) {
        size_t most = length / 3 + 1;
        struct field field;

        if (length > NAME_LENGTH)
                return "";
        if (find_nearest(fields, key, length, &most, &field))
                return nd_arena_copy(arena, field.name, field.length);
        return suggest_below(fields, key, length, arena);
}

/* ---- the check ---- */

struct check {
        struct nd_arena *arena;
        struct nd_schema_unknowns *unknowns;
        size_t count;
};

static void note_unknown(struct check *check, const struct nd_place *place, const char *type, size_t type_length,
                         const char *fields, yyjson_val *key) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_LENGTH);

        if (check->count++ >= ND_SCHEMA_UNKNOWN)
                return;
        nd_place_format(place, &path);
        nd_vector_push(&check->unknowns->items,
                       ((struct nd_schema_unknown) {
                               .key = key,
                               .path = nd_arena_copy(check->arena, nd_text_get(&path), path.length),
                               .type = nd_arena_copy(check->arena, type, type_length),
                               .suggestion = suggest(fields, yyjson_get_str(key), yyjson_get_len(key), check->arena),
                       }));
}

static void check_value(struct check *check, const struct nd_place *place, const char *type, size_t type_length,
                        yyjson_val *value);

static void check_object(struct check *check, const struct nd_place *place, const char *type, size_t type_length,
                         yyjson_val *object) {
        const char *fields = fields_of(type, type_length);
        yyjson_obj_iter members;
        struct field field;

        if (!fields)
                return;
        yyjson_obj_iter_init(object, &members);
        for (yyjson_val *key; (key = yyjson_obj_iter_next(&members));) {
                const struct nd_place here = {.up = place, .name = yyjson_get_str(key)};

                if (!find_field(fields, yyjson_get_str(key), yyjson_get_len(key), &field))
                        note_unknown(check, &here, type, type_length, fields, key);
                else if (field.type)
                        check_value(check, &here, field.type, field.type_length, yyjson_obj_iter_get_val(key));
        }
}

static void check_value(struct check *check, const struct nd_place *place, const char *type, size_t type_length,
                        yyjson_val *value) {
        yyjson_arr_iter items;
        size_t index = 0;

        if (yyjson_is_obj(value))
                check_object(check, place, type, type_length, value);
        if (!yyjson_is_arr(value))
                return;
        yyjson_arr_iter_init(value, &items);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&items)); index++)
                if (yyjson_is_obj(item))
                        check_object(check, &(struct nd_place) {.up = place, .index = index}, type, type_length, item);
}

size_t nd_schema_check(const char *kind, yyjson_val *object, struct nd_arena *arena, struct nd_schema_unknowns *ret) {
        struct check check = {.arena = arena, .unknowns = ret};

        if (yyjson_is_obj(object))
                check_object(&check, nullptr, kind, strlen(kind), object);
        return check.count;
}

void nd_schema_print(struct nd_json_out *out) {
        nd_json_open(out, nullptr, '{');
        for (size_t i = 0; i < nd_count_of(nd_schema_table); i++) {
                const char *fields = nd_schema_table[i].fields;
                struct field field;

                nd_json_open(out, nd_schema_table[i].name, '{');
                while (next_field(&fields, &field)) {
                        nd_autofree char *name = nd_strndup(field.name, field.length);
                        nd_autofree char *type = nd_strndup(field.type ?: "", field.type_length);

                        nd_json_string(out, name, type);
                }
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
}
