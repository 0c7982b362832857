/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum {
        FIRST_CHUNK = 4096,
        LARGEST_STEP = 1 << 20, /* chunks double up to here */
};

struct nd_arena_chunk {
        struct nd_arena_chunk *older;
        size_t size;
        size_t used;
        alignas(max_align_t) char bytes[];
};

static void free_chain(struct nd_arena_chunk *chunk) {
        for (struct nd_arena_chunk *older; chunk; chunk = older) {
                older = chunk->older;
                free(chunk);
        }
}

void nd_arena_done(struct nd_arena *arena) {
        free_chain(arena->newest);
        *arena = (struct nd_arena) {};
}

void nd_arena_reset(struct nd_arena *arena) {
        struct nd_arena_chunk *kept = arena->newest;

        if (!kept)
                return;
        if (kept->size > LARGEST_STEP) { /* one huge request must not be kept forever */
                nd_arena_done(arena);
                return;
        }
        free_chain(kept->older);
        memset(kept->bytes, 0, kept->used);
        kept->older = nullptr;
        kept->used = 0;
        arena->total = kept->size;
}

static struct nd_arena_chunk *add_chunk_of(struct nd_arena *arena, size_t size) {
        struct nd_arena_chunk *chunk = nd_calloc(1, sizeof *chunk + size);

        chunk->size = size;
        chunk->older = arena->newest;
        arena->newest = chunk;
        arena->total += size;
        return chunk;
}

static struct nd_arena_chunk *add_chunk(struct nd_arena *arena, size_t needed) {
        size_t size = arena->newest ? arena->newest->size * 2 : FIRST_CHUNK;

        if (size > LARGEST_STEP)
                size = LARGEST_STEP;
        return add_chunk_of(arena, size < needed ? needed : size);
}

void nd_arena_reserve(struct nd_arena *arena, size_t bytes) {
        if (!arena->newest)
                (void) add_chunk_of(arena, bytes);
}

size_t nd_arena_used(const struct nd_arena *arena) {
        size_t used = 0;

        for (const struct nd_arena_chunk *chunk = arena->newest; chunk; chunk = chunk->older)
                used += chunk->used;
        return used;
}

void *nd_arena_alloc(struct nd_arena *arena, size_t count, size_t size) {
        constexpr size_t step = alignof(max_align_t);
        struct nd_arena_chunk *chunk = arena->newest;
        size_t needed;
        void *memory;

        if (__builtin_mul_overflow(count, size, &needed) || __builtin_add_overflow(needed, step, &needed))
                abort();
        /* Rounded up; the step was added above. A size of 0 takes nothing. */
        needed = (needed - 1) / step * step;
        if (!chunk || chunk->size - chunk->used < needed)
                chunk = add_chunk(arena, needed);
        memory = chunk->bytes + chunk->used;
        chunk->used += needed;
        return memory;
}

char *nd_arena_copy(struct nd_arena *arena, const char *bytes, size_t length) {
        char *copy = nd_arena_alloc(arena, 1, length + 1);

        if (length > 0)
                memcpy(copy, bytes, length);
        return copy;
}

char *nd_arena_strdup(struct nd_arena *arena, const char *text) {
        return nd_arena_copy(arena, text, strlen(text));
}

char *nd_arena_format_va(struct nd_arena *arena, const char *format, va_list arguments) {
        char small[256];
        va_list again;
        char *text;
        int length;

        va_copy(again, arguments);
        length = vsnprintf(small, sizeof small, format, again);
        va_end(again);
        if (length < 0)
                abort();
        if ((size_t) length < sizeof small)
                return nd_arena_copy(arena, small, (size_t) length);
        text = nd_arena_alloc(arena, 1, (size_t) length + 1);
        (void) vsnprintf(text, (size_t) length + 1, format, arguments);
        return text;
}

char *nd_arena_format(struct nd_arena *arena, const char *format, ...) {
        va_list arguments;
        char *text;

        va_start(arguments, format);
        text = nd_arena_format_va(arena, format, arguments);
        va_end(arguments);
        return text;
}
