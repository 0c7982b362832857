/* SPDX-License-Identifier: Apache-2.0 */
/* vector.h - growing arrays with their element's type
 *
 *      nd_vector(struct nd_userns_extent) extents = {};
 *      nd_vector_push(&extents, ((struct nd_userns_extent) {.host = 65536}));
 *      nd_vector_done(&extents);
 *
 * The owner frees what the elements own before nd_vector_done(). */
#pragma once

#include "base/memory.h"

#define nd_vector(type)                                                                                                       \
        struct {                                                                                                              \
                type *items;                                                                                                  \
                size_t count;                                                                                                 \
                size_t capacity;                                                                                              \
        }

#define nd_vector_push(vector, item)                                                                                          \
        do {                                                                                                                  \
                if ((vector)->count == (vector)->capacity) {                                                                  \
                        (vector)->capacity = (vector)->capacity > 0 ? (vector)->capacity * 2 : 8;                             \
                        (vector)->items = nd_realloc_array((vector)->items, (vector)->capacity, sizeof *(vector)->items);     \
                }                                                                                                             \
                (vector)->items[(vector)->count++] = (item);                                                                  \
        } while (0)

#define nd_vector_done(vector)                                                                                                \
        do {                                                                                                                  \
                free((vector)->items);                                                                                        \
                (vector)->items = nullptr;                                                                                    \
                (vector)->count = (vector)->capacity = 0;                                                                     \
        } while (0)

/* An empty vector has no items to step from: nullptr + 0 is undefined in C, and clang's sanitizer
 * reports it. */
#define nd_vector_each(item, vector)                                                                                          \
        for (__auto_type item = (vector)->items; item && item < (vector)->items + (vector)->count; item++)
