/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strings.h"

#include <string.h>

#include "base/assert.h"

void nd_strings_done(struct nd_strings *strings) {
        nd_vector_each (text, strings) {
                free(*text);
        }
        nd_vector_done(strings);
}

void nd_strings_add_owned(struct nd_strings *strings, char *text) {
        nd_assert(strings->count < ND_STRINGS_CEILING);
        nd_vector_push(strings, text);
}

void nd_strings_add(struct nd_strings *strings, const char *text) {
        nd_strings_add_owned(strings, nd_strdup(text));
}

void nd_strings_addf(struct nd_strings *strings, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        nd_strings_add_owned(strings, nd_format_va(format, arguments));
        va_end(arguments);
}

bool nd_strings_add_within(struct nd_strings *strings, size_t ceiling, const char *text) {
        if (strings->count >= ceiling)
                return false;
        nd_strings_add(strings, text);
        return true;
}

bool nd_strings_have(const struct nd_strings *strings, const char *text) {
        nd_vector_each (item, strings) {
                if (strcmp(*item, text) == 0)
                        return true;
        }
        return false;
}

static int compare(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

void nd_strings_sort(struct nd_strings *strings) {
        if (strings->count > 0)
                qsort(strings->items, strings->count, sizeof *strings->items, compare);
}
