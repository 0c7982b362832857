/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that is freed at once
 *
 * A decoded request lives as long as the request: an object of many small lists and texts takes one
 * arena, and its parts are never freed one by one. Memory is zeroed. Like nd_malloc() it aborts if
 * memory runs out: input is bounded before it is decoded. */
#pragma once

#include "base/memory.h"

struct nd_arena_chunk;

/* Zero-initialised is empty. */
struct nd_arena {
        struct nd_arena_chunk *newest; /* the one being filled */
        size_t total;                  /* bytes in all chunks */
};

void nd_arena_done(struct nd_arena *arena);
void nd_arena_reset(struct nd_arena *arena); /* empties it and keeps one chunk for the next use */

/* Reserves space in an empty arena: for long-lived data of known size. */
void nd_arena_reserve(struct nd_arena *arena, size_t bytes);
size_t nd_arena_used(const struct nd_arena *arena); /* bytes allocated from it */

[[nodiscard, gnu::returns_nonnull]] void *nd_arena_alloc(struct nd_arena *arena, size_t count, size_t size);
[[nodiscard, gnu::returns_nonnull]] char *nd_arena_copy(struct nd_arena *arena, const char *bytes, size_t length);
[[nodiscard, gnu::returns_nonnull]] char *nd_arena_strdup(struct nd_arena *arena, const char *text);
[[nodiscard, gnu::returns_nonnull, gnu::format(printf, 2, 3)]]
char *nd_arena_format(struct nd_arena *arena, const char *format, ...);
[[nodiscard, gnu::returns_nonnull, gnu::format(printf, 2, 0)]]
char *nd_arena_format_va(struct nd_arena *arena, const char *format, va_list arguments);

#define nd_autoarena nd_cleanup(nd_arena_done)
#define nd_arena_new(arena, type) ((type *) nd_arena_alloc((arena), 1, sizeof(type)))
