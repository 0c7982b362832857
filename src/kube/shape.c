/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/shape.h"

#include <string.h>

#include "base/text.h"
#include "kube/place.h"

enum {
        MOST_FIELDS = 64, /* of one shape: one bit each records that it was seen */
        PATH_LENGTH = 400,
};

struct reader {
        struct nd_arena *arena;
};

static struct nd_error *refuse(const struct nd_place *place, const char *what) {
        nd_autotext struct nd_text path = ND_TEXT(PATH_LENGTH);

        nd_place_format(place, &path);
        if (path.length == 0)
                return nd_error_new(ND_INVALID, 0, "%s", what);
        return nd_error_new(ND_INVALID, 0, "%s: %s", nd_text_get(&path), what);
}

static struct nd_error *refuse_type(const struct nd_place *place, const char *expected, yyjson_val *value) {
        nd_autofree char *what = nd_format("%s is expected, not %s", expected, yyjson_get_type_desc(value));

        return refuse(place, what);
}

/* Reads a string, or nullptr for null. */
static struct nd_error *read_text(struct reader *r, const struct nd_place *place, yyjson_val *value, const char **ret) {
        const char *text = yyjson_get_str(value);
        size_t length = yyjson_get_len(value);

        if (yyjson_is_null(value))
                return nullptr;
        if (!text)
                return refuse_type(place, "text", value);
        if (memchr(text, '\0', length))
                return refuse(place, "the text contains a null byte");
        *ret = nd_arena_copy(r->arena, text, length);
        return nullptr;
}

static struct nd_error *read_int(const struct nd_place *place, yyjson_val *value, int64_t least, int64_t most, int64_t *ret) {
        if (!yyjson_is_int(value))
                return refuse_type(place, "a whole number", value);
        if (yyjson_is_uint(value) && yyjson_get_uint(value) > (uint64_t) most)
                return refuse(place, "the number is too large");
        if (yyjson_is_sint(value) && yyjson_get_sint(value) < least)
                return refuse(place, "the number is too small");
        *ret = yyjson_get_sint(value);
        return nullptr;
}

static struct nd_error *read_object(struct reader *r, const struct nd_place *place, const struct nd_shape *shape,
                                    yyjson_val *value, void *target);

static struct nd_error *read_list(struct reader *r, const struct nd_place *place, const struct nd_shape *shape,
                                  yyjson_val *value, void *target) {
        nd_list(void) list = {};
        yyjson_arr_iter items;

        if (!yyjson_is_arr(value))
                return refuse_type(place, "a list", value);
        list.items = nd_arena_alloc(r->arena, yyjson_arr_size(value), shape->size);
        list.count = yyjson_arr_size(value);
        yyjson_arr_iter_init(value, &items);
        for (size_t i = 0; i < list.count; i++) {
                const struct nd_place here = {.up = place, .index = i};

                nd_try(read_object(r, &here, shape, yyjson_arr_iter_next(&items), (char *) list.items + i * shape->size));
        }
        memcpy(target, &list, sizeof list);
        return nullptr;
}

static struct nd_error *read_texts(struct reader *r, const struct nd_place *place, yyjson_val *value,
                                   struct nd_shape_texts *target) {
        yyjson_arr_iter items;
        struct nd_shape_texts list;

        if (!yyjson_is_arr(value))
                return refuse_type(place, "a list", value);
        list.count = yyjson_arr_size(value);
        list.items = nd_arena_alloc(r->arena, list.count, sizeof *list.items);
        yyjson_arr_iter_init(value, &items);
        for (size_t i = 0; i < list.count; i++) {
                const struct nd_place here = {.up = place, .index = i};

                list.items[i] = "";
                nd_try(read_text(r, &here, yyjson_arr_iter_next(&items), &list.items[i]));
        }
        *target = list;
        return nullptr;
}

static struct nd_error *read_ints(struct reader *r, const struct nd_place *place, yyjson_val *value,
                                  struct nd_shape_ints *target) {
        yyjson_arr_iter items;
        struct nd_shape_ints list;

        if (!yyjson_is_arr(value))
                return refuse_type(place, "a list", value);
        list.count = yyjson_arr_size(value);
        list.items = nd_arena_alloc(r->arena, list.count, sizeof *list.items);
        yyjson_arr_iter_init(value, &items);
        for (size_t i = 0; i < list.count; i++) {
                const struct nd_place here = {.up = place, .index = i};
                yyjson_val *item = yyjson_arr_iter_next(&items);

                if (!yyjson_is_null(item)) /* Go leaves a 0 for it */
                        nd_try(read_int(&here, item, INT64_MIN, INT64_MAX, &list.items[i]));
        }
        *target = list;
        return nullptr;
}

static int compare_pairs(const void *a, const void *b) {
        const struct nd_shape_pair *x = a, *y = b;

        return strcmp(x->key, y->key);
}

static struct nd_error *read_pairs(struct reader *r, const struct nd_place *place, yyjson_val *value,
                                   struct nd_shape_pairs *target) {
        yyjson_val *key, *member;
        yyjson_obj_iter members;
        struct nd_shape_pairs pairs;
        size_t count = 0;

        if (!yyjson_is_obj(value))
                return refuse_type(place, "an object", value);
        pairs.count = yyjson_obj_size(value);
        pairs.items = nd_arena_alloc(r->arena, pairs.count, sizeof *pairs.items);
        yyjson_obj_iter_init(value, &members);
        while ((key = yyjson_obj_iter_next(&members))) {
                struct nd_place here = {.up = place};
                struct nd_shape_pair *pair = &pairs.items[count++];

                member = yyjson_obj_iter_get_val(key);
                nd_try(read_text(r, place, key, &pair->key));
                here.name = pair->key;
                pair->value = "";
                nd_try(read_text(r, &here, member, &pair->value));
        }
        if (pairs.count > 0)
                qsort(pairs.items, pairs.count, sizeof *pairs.items, compare_pairs);
        for (size_t i = 1; i < pairs.count; i++)
                if (nd_streq(pairs.items[i - 1].key, pairs.items[i].key))
                        return refuse(&(struct nd_place) {.up = place, .name = pairs.items[i].key}, "duplicate field");
        *target = pairs;
        return nullptr;
}

static struct nd_error *read_flag(const struct nd_place *place, const struct nd_shape_field *field, yyjson_val *value,
                                  void *target) {
        if (!yyjson_is_bool(value))
                return refuse_type(place, "true or false", value);
        if (field->kind == ND_SHAPE_BOOL)
                *(bool *) target = yyjson_get_bool(value);
        else
                *(enum nd_shape_switch *) target = yyjson_get_bool(value) ? ND_ON : ND_OFF;
        return nullptr;
}

static struct nd_error *read_number(const struct nd_place *place, const struct nd_shape_field *field, yyjson_val *value,
                                    struct nd_shape_int *target) {
        bool narrow = field->kind == ND_SHAPE_INT32;

        nd_try(read_int(place, value, narrow ? INT32_MIN : INT64_MIN, narrow ? INT32_MAX : INT64_MAX, &target->value));
        target->set = true;
        return nullptr;
}

static struct nd_error *read_pointer(struct reader *r, const struct nd_place *place, const struct nd_shape_field *field,
                                     yyjson_val *value, void *target) {
        void *object = nd_arena_alloc(r->arena, 1, field->of->size);

        nd_try(read_object(r, place, field->of, value, object));
        memcpy(target, &object, sizeof object);
        return nullptr;
}

static struct nd_error *read_field(struct reader *r, const struct nd_place *place, const struct nd_shape_field *field,
                                   yyjson_val *value, void *target) {
        if (yyjson_is_null(value))
                return nullptr;
        switch (field->kind) {
        case ND_SHAPE_TEXT:
                return read_text(r, place, value, target);
        case ND_SHAPE_BOOL:
        case ND_SHAPE_SWITCH:
                return read_flag(place, field, value, target);
        case ND_SHAPE_INT:
        case ND_SHAPE_INT32:
                return read_number(place, field, value, target);
        case ND_SHAPE_PRESENT:
                if (!yyjson_is_obj(value))
                        return refuse_type(place, "an object", value);
                *(uint64_t *) target |= UINT64_C(1) << field->bit;
                return nullptr;
        case ND_SHAPE_INLINE:
                return read_object(r, place, field->of, value, target);
        case ND_SHAPE_OBJECT:
                return read_pointer(r, place, field, value, target);
        case ND_SHAPE_LIST:
                return read_list(r, place, field->of, value, target);
        case ND_SHAPE_TEXTS:
                return read_texts(r, place, value, target);
        case ND_SHAPE_INTS:
                return read_ints(r, place, value, target);
        case ND_SHAPE_PAIRS:
                return read_pairs(r, place, value, target);
        }
        return refuse(place, "unknown kind of field");
}

/* Returns the next entry of the table for this key; a name may occur more than once, for several
 * uses of one value. */
static const struct nd_shape_field *find_field(const struct nd_shape_field *field, yyjson_val *key) {
        for (; field->name; field++)
                if (yyjson_equals_str(key, field->name))
                        return field;
        return nullptr;
}

static struct nd_error *read_object(struct reader *r, const struct nd_place *place, const struct nd_shape *shape,
                                    yyjson_val *value, void *target) {
        yyjson_obj_iter members;
        uint64_t seen = 0;
        yyjson_val *key;

        if (yyjson_is_null(value))
                return nullptr;
        if (!yyjson_is_obj(value))
                return refuse_type(place, "an object", value);
        yyjson_obj_iter_init(value, &members);
        while ((key = yyjson_obj_iter_next(&members))) {
                const struct nd_shape_field *field = find_field(shape->fields, key);
                const struct nd_place here = {.up = place, .name = field ? field->name : nullptr};

                if (!field)
                        continue;
                if (seen & UINT64_C(1) << (field - shape->fields) % MOST_FIELDS)
                        return refuse(&here, "duplicate field");
                seen |= UINT64_C(1) << (field - shape->fields) % MOST_FIELDS;
                for (; field; field = find_field(field + 1, key))
                        nd_try(read_field(r, &here, field, yyjson_obj_iter_get_val(key), (char *) target + field->offset));
        }
        return nullptr;
}

struct nd_error *nd_shape_decode(const struct nd_shape *shape, yyjson_val *value, struct nd_arena *arena, void *target) {
        return read_object(&(struct reader) {.arena = arena}, nullptr, shape, value, target);
}

const char *nd_shape_pairs_get(const struct nd_shape_pairs *pairs, const char *key) {
        const struct nd_shape_pair wanted = {.key = key}, *found;

        if (pairs->count == 0)
                return nullptr;
        found = bsearch(&wanted, pairs->items, pairs->count, sizeof *pairs->items, compare_pairs);
        return found ? found->value : nullptr;
}

bool nd_shape_texts_have(const struct nd_shape_texts *texts, const char *text) {
        for (size_t i = 0; i < texts->count; i++)
                if (nd_streq(texts->items[i], text))
                        return true;
        return false;
}

bool nd_shape_texts_equal(const struct nd_shape_texts *a, const struct nd_shape_texts *b) {
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++)
                if (!nd_streq(a->items[i], b->items[i]))
                        return false;
        return true;
}
