/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - table-driven decoder of Kubernetes objects into structs
 *
 * A shape lists the fields of an object that we read, with their types and destinations; other
 * fields are skipped. The rules are those of the API server's own decoder: null is absence, a value
 * of the wrong type is an error. Two rules are stricter: a duplicate field is an error (one decoder
 * may use the first, another the last), and so is a null byte in a text (it would end a C string
 * early). Errors contain the path: "spec.containers[0].name: ...".
 *
 * All values are copied into an arena; the JSON document may be freed. */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"

/* An optional boolean. */
enum nd_shape_switch {
        ND_UNSET,
        ND_OFF,
        ND_ON,
};

/* An optional integer. */
struct nd_shape_int {
        int64_t value;
        bool set;
};

#define ND_INT(number) ((struct nd_shape_int) {.value = (number), .set = true})

/* Lists. items is nullptr if the object has none, which differs from an empty list for some
 * fields. */
#define nd_list(type)                                                                                                         \
        struct {                                                                                                              \
                type *items;                                                                                                  \
                size_t count;                                                                                                 \
        }
#define nd_list_each(item, list) for (__auto_type item = (list)->items; item && item < (list)->items + (list)->count; item++)

struct nd_shape_texts {
        const char **items;
        size_t count;
};

struct nd_shape_ints {
        int64_t *items;
        size_t count;
};

struct nd_shape_pair {
        const char *key;
        const char *value;
};

/* Labels and annotations, sorted by key. */
struct nd_shape_pairs {
        struct nd_shape_pair *items;
        size_t count;
};

enum nd_shape_kind {
        ND_SHAPE_TEXT,    /* const char *; nullptr = absent */
        ND_SHAPE_BOOL,    /* bool; absent = false */
        ND_SHAPE_SWITCH,  /* enum nd_shape_switch */
        ND_SHAPE_INT,     /* struct nd_shape_int of 64 bits */
        ND_SHAPE_INT32,   /* struct nd_shape_int of 32 bits */
        ND_SHAPE_PRESENT, /* a bit of a uint64_t, set if the object exists */
        ND_SHAPE_INLINE,  /* an object in an embedded struct */
        ND_SHAPE_OBJECT,  /* a pointer to a struct; nullptr = absent */
        ND_SHAPE_LIST,    /* nd_list() of structs */
        ND_SHAPE_TEXTS,   /* struct nd_shape_texts */
        ND_SHAPE_INTS,    /* struct nd_shape_ints */
        ND_SHAPE_PAIRS,   /* struct nd_shape_pairs */
};

struct nd_shape;

struct nd_shape_field {
        const char *name; /* nullptr ends a table */
        enum nd_shape_kind kind;
        size_t offset;
        const struct nd_shape *of; /* of INLINE, OBJECT and LIST */
        unsigned bit;              /* of PRESENT */
};

struct nd_shape {
        size_t size; /* of the struct */
        const struct nd_shape_field *fields;
};

/* Entries of a table, and the shape that it describes. */
#define ND_FIELD(type, json, member, sort) {.name = (json), .kind = ND_SHAPE_##sort, .offset = offsetof(struct type, member)}
#define ND_NESTED(type, json, member, sort, shape)                                                                            \
        {.name = (json), .kind = ND_SHAPE_##sort, .offset = offsetof(struct type, member), .of = &(shape)}
#define ND_SHAPE_OF(type, table) {.size = sizeof(struct type), .fields = (table)}

/* Fills a zeroed struct. A value that is not an object is an error; null counts as an empty
 * object. */
[[nodiscard]] struct nd_error *nd_shape_decode(const struct nd_shape *shape, yyjson_val *value, struct nd_arena *arena,
                                               void *target);

/* Returns the value of a label or annotation; nullptr if there is none. */
const char *nd_shape_pairs_get(const struct nd_shape_pairs *pairs, const char *key);
bool nd_shape_texts_have(const struct nd_shape_texts *texts, const char *text);
/* The same texts in the same order; no list equals an empty one. */
bool nd_shape_texts_equal(const struct nd_shape_texts *a, const struct nd_shape_texts *b);
