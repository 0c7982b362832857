/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - ownership by attributes
 *
 * The scope that declares a variable cleans it up: nd_cleanup() names the destructor at the
 * declaration, and a hand-over is visible as nd_take(), nd_take_ptr() or nd_take_fd(). Small
 * allocations abort if memory runs out, so callers never check them; an untrusted size is compared
 * with a ceiling before it gets here. */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define nd_cleanup(destructor) __attribute__((cleanup(destructor)))

/* Moves a value out of a variable and leaves the empty value behind, which its destructor
 * accepts. */
#define nd_take(variable, empty)                                                                                              \
        ({                                                                                                                    \
                __auto_type _taken = (variable);                                                                              \
                (variable) = (empty);                                                                                         \
                _taken;                                                                                                       \
        })
#define nd_take_ptr(pointer) nd_take(pointer, nullptr)
#define nd_take_fd(fd) nd_take(fd, -EBADF)

#define nd_count_of(array) (sizeof(array) / sizeof(*(array)))

[[nodiscard]] void *nd_malloc(size_t size);
[[nodiscard]] void *nd_calloc(size_t count, size_t size);
[[nodiscard]] void *nd_realloc_array(void *memory, size_t count, size_t size);
[[nodiscard]] char *nd_strdup(const char *text);
[[nodiscard]] char *nd_strndup(const char *text, size_t length);
/* Frees the old value; the text may be a part of it. */
void nd_strset(char **field, const char *text);
[[nodiscard, gnu::format(printf, 1, 2)]] char *nd_format(const char *format, ...);
[[nodiscard, gnu::format(printf, 1, 0)]] char *nd_format_va(const char *format, va_list arguments);

#define nd_new(type) ((type *) nd_calloc(1, sizeof(type)))

/* Destructors for plain memory and descriptors; they preserve errno, so that they may run on error
 * paths. */
static inline void nd_free_ptr(void *pointer_address) {
        int saved = errno;

        free(*(void **) pointer_address);
        errno = saved;
}

static inline void nd_close_fd(int *fd) {
        int saved = errno;

        if (*fd >= 0)
                (void) close(*fd);
        *fd = -EBADF;
        errno = saved;
}

#define nd_autofree nd_cleanup(nd_free_ptr)
#define nd_autoclose nd_cleanup(nd_close_fd)
