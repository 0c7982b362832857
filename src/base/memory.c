/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdckdint.h>
#include <stdio.h>
#include <string.h>

[[noreturn]] static void out_of_memory(void) {
        static const char text[] = "nodens: out of memory\n";

        (void) !write(STDERR_FILENO, text, sizeof text - 1);
        abort();
}

void *nd_malloc(size_t size) {
        void *memory = malloc(size > 0 ? size : 1);

        if (!memory)
                out_of_memory();
        return memory;
}

void *nd_calloc(size_t count, size_t size) {
        void *memory = calloc(count > 0 ? count : 1, size > 0 ? size : 1);

        if (!memory)
                out_of_memory();
        return memory;
}

void *nd_realloc_array(void *memory, size_t count, size_t size) {
        size_t bytes;

        if (ckd_mul(&bytes, count, size))
                out_of_memory();
        memory = realloc(memory, bytes > 0 ? bytes : 1);
        if (!memory)
                out_of_memory();
        return memory;
}

char *nd_strdup(const char *text) {
        return nd_strndup(text, strlen(text));
}

void nd_strset(char **field, const char *text) {
        char *copy = nd_strdup(text);

        free(*field);
        *field = copy;
}

char *nd_strndup(const char *text, size_t length) {
        size_t n = strnlen(text, length);
        char *copy = nd_malloc(n + 1);

        memcpy(copy, text, n);
        copy[n] = '\0';
        return copy;
}

char *nd_format_va(const char *format, va_list arguments) {
        char *text = nullptr;

        if (vasprintf(&text, format, arguments) < 0)
                out_of_memory();
        return text;
}

char *nd_format(const char *format, ...) {
        va_list arguments;
        char *text;

        va_start(arguments, format);
        text = nd_format_va(format, arguments);
        va_end(arguments);
        return text;
}
