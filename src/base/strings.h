/* SPDX-License-Identifier: Apache-2.0 */
/* strings.h - a list that owns its strings
 *
 * The macros of vector.h work on it; `= {}` is an empty list. A caller whose entries come from
 * outside compares their number with its own ceiling first, or adds with nd_strings_add_within().
 * No list has more than ND_STRINGS_CEILING entries: adding another one is a programming error. */
#pragma once

#include "base/vector.h"

enum {
        ND_STRINGS_CEILING = 1 << 24,
};

struct nd_strings {
        char **items;
        size_t count;
        size_t capacity;
};

void nd_strings_done(struct nd_strings *strings);
void nd_strings_add(struct nd_strings *strings, const char *text); /* a copy */
/* Takes ownership of the heap string. */
void nd_strings_add_owned(struct nd_strings *strings, char *text);
[[gnu::format(printf, 2, 3)]] void nd_strings_addf(struct nd_strings *strings, const char *format, ...);

/* Adds a copy. Returns false and adds nothing when the list has ceiling entries already. */
[[nodiscard]] bool nd_strings_add_within(struct nd_strings *strings, size_t ceiling, const char *text);

[[nodiscard]] bool nd_strings_have(const struct nd_strings *strings, const char *text);
void nd_strings_sort(struct nd_strings *strings); /* by bytes */
