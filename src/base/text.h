/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - growing text with a ceiling, and strict number parsing */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/error.h"

/* A growing buffer. Appending past the ceiling drops the rest and sets overflow, which the caller
 * checks once at the end. Zero-initialised with a ceiling is empty; bytes is always terminated. */
struct nd_text {
        char *bytes;   /* nullptr while empty */
        size_t length; /* without the terminator */
        size_t capacity;
        size_t ceiling; /* maximum length */
        bool overflow;
};

#define ND_TEXT(most) ((struct nd_text) {.ceiling = (most)})

void nd_text_done(struct nd_text *text);
void nd_text_append(struct nd_text *text, const char *bytes, size_t length);
void nd_text_add(struct nd_text *text, const char *string);
[[gnu::format(printf, 2, 3)]] void nd_text_addf(struct nd_text *text, const char *format, ...);
const char *nd_text_get(const struct nd_text *text); /* "" while empty */
[[nodiscard]] char *nd_text_steal(struct nd_text *text);

#define nd_autotext nd_cleanup(nd_text_done)

/* Decimal digits only: no sign, no space, no other base. Returns -EINVAL, or -ERANGE above the
 * ceiling. */
[[nodiscard]] int nd_text_parse_u64(const char *text, uint64_t ceiling, uint64_t *ret);
[[nodiscard]] int nd_text_parse_u32(const char *text, uint32_t *ret);
/* Two of them with a colon between, as "UID:GID". */
[[nodiscard]] int nd_text_parse_u32_pair(const char *text, uint32_t *ret_first, uint32_t *ret_second);

/* Appends a string as Go's %q prints it: double quotes, backslash escapes, \u for what is not
 * printable, \x for bytes that are not UTF-8. Error texts that must equal the kubelet's go through
 * here. */
void nd_text_add_quoted(struct nd_text *text, const char *bytes, size_t length);
[[nodiscard]] char *nd_text_quote(const char *string);

/* Appends text with every byte that is not part of valid UTF-8 replaced by U+FFFD; the ceiling
 * never splits a character. */
void nd_text_add_utf8(struct nd_text *text, const char *bytes, size_t length);

/* Appends text for one line of a terminal: control characters become spaces, bytes that are not
 * UTF-8 and other characters that do not print U+FFFD; the ceiling never splits a character. */
void nd_text_add_printable(struct nd_text *text, const char *bytes, size_t length);

/* Decodes the first UTF-8 character of at least one byte; returns its length, 0 if the bytes do not
 * begin with one. */
[[nodiscard]] size_t nd_text_utf8_next(const char *bytes, size_t length, uint32_t *ret);

/* Whether a character can make a terminal show something else than the text: C0 and C1 controls
 * (some terminals take C1 characters as escape sequences), separators of lines, and characters that
 * reorder the text around them. */
[[nodiscard]] bool nd_text_is_control(uint32_t c);

/* The length of the first UTF-8 character, 0 if the bytes do not begin with one. */
[[nodiscard]] size_t nd_text_utf8_length(const char *bytes, size_t length);

/* True for valid UTF-8 without surrogates or overlong forms. */
[[nodiscard]] bool nd_text_utf8_valid(const char *bytes, size_t length);

static inline bool nd_streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

[[nodiscard]] bool nd_has_prefix(const char *text, const char *prefix);
