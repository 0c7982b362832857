/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <string.h>

void nd_text_done(struct nd_text *text) {
        free(text->bytes);
        *text = ND_TEXT(text->ceiling);
}

/* Ensures capacity for a terminated text of the given length. */
static void reserve(struct nd_text *text, size_t length) {
        size_t capacity = text->capacity > 0 ? text->capacity : 64;

        if (length < text->capacity)
                return;
        while (capacity <= length)
                capacity *= 2;
        text->bytes = nd_realloc_array(text->bytes, capacity, 1);
        text->capacity = capacity;
}

void nd_text_append(struct nd_text *text, const char *bytes, size_t length) {
        size_t room = text->ceiling - text->length;

        if (length > room) {
                text->overflow = true;
                length = room;
        }
        if (length == 0)
                return;
        reserve(text, text->length + length);
        memcpy(text->bytes + text->length, bytes, length);
        text->length += length;
        text->bytes[text->length] = '\0';
}

void nd_text_add(struct nd_text *text, const char *string) {
        nd_text_append(text, string, strlen(string));
}

void nd_text_addf(struct nd_text *text, const char *format, ...) {
        nd_autofree char *piece = nullptr;
        va_list arguments;

        va_start(arguments, format);
        piece = nd_format_va(format, arguments);
        va_end(arguments);
        nd_text_add(text, piece);
}

const char *nd_text_get(const struct nd_text *text) {
        return text->bytes ? text->bytes : "";
}

char *nd_text_steal(struct nd_text *text) {
        char *bytes = text->bytes ? nd_take_ptr(text->bytes) : nd_strdup("");

        *text = ND_TEXT(text->ceiling);
        return bytes;
}

int nd_text_parse_u64(const char *text, uint64_t ceiling, uint64_t *ret) {
        uint64_t value = 0;

        if (*text == '\0')
                return -EINVAL;
        for (const char *c = text; *c; c++) {
                if (*c < '0' || *c > '9')
                        return -EINVAL;
                if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *c - '0', &value) ||
                    value > ceiling)
                        return -ERANGE;
        }
        *ret = value;
        return 0;
}

int nd_text_parse_u32(const char *text, uint32_t *ret) {
        uint64_t value;
        int r = nd_text_parse_u64(text, UINT32_MAX, &value);

        if (r < 0)
                return r;
        *ret = (uint32_t) value;
        return 0;
}

int nd_text_parse_u32_pair(const char *text, uint32_t *ret_first, uint32_t *ret_second) {
        const char *colon = strchr(text, ':');
        nd_autofree char *first = colon ? nd_strndup(text, (size_t) (colon - text)) : nullptr;
        int r = first ? nd_text_parse_u32(first, ret_first) : -EINVAL;

        return r < 0 ? r : nd_text_parse_u32(colon + 1, ret_second);
}

size_t nd_text_utf8_next(const char *bytes, size_t length, uint32_t *ret) {
        static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
        const unsigned char *b = (const unsigned char *) bytes;
        size_t n = b[0] < 0x80 ? 1 : b[0] < 0xc0 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf8 ? 4 : 0;
        uint32_t value;

        if (n == 0 || n > length)
                return 0;
        value = n == 1 ? b[0] : b[0] & (0xffu >> (n + 1));
        for (size_t i = 1; i < n; i++) {
                if ((b[i] & 0xc0) != 0x80)
                        return 0;
                value = value << 6 | (b[i] & 0x3f);
        }
        if (value < smallest[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
                return 0;
        *ret = value;
        return n;
}

size_t nd_text_utf8_length(const char *bytes, size_t length) {
        uint32_t character;

        return length > 0 ? nd_text_utf8_next(bytes, length, &character) : 0;
}

bool nd_text_is_control(uint32_t c) {
        return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
               (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void nd_text_add_utf8(struct nd_text *text, const char *bytes, size_t length) {
        static const char replacement[] = "\xef\xbf\xbd";

        for (size_t i = 0, n; i < length; i += n > 0 ? n : 1) {
                n = nd_text_utf8_length(bytes + i, length - i);
                if (text->length + (n > 0 ? n : sizeof replacement - 1) > text->ceiling) {
                        text->overflow = true;
                        return;
                }
                if (n > 0)
                        nd_text_append(text, bytes + i, n);
                else
                        nd_text_add(text, replacement);
        }
}

bool nd_text_utf8_valid(const char *bytes, size_t length) {
        uint32_t character;

        for (size_t i = 0, n; i < length; i += n) {
                n = nd_text_utf8_next(bytes + i, length - i, &character);
                if (n == 0)
                        return false;
        }
        return true;
}

static bool printable(uint32_t c) {
        /* Go uses Unicode tables. Letters, marks and symbols below the private areas cover the
         * names in use; controls, separators, surrogates, non-characters and private use are
         * escaped. */
        if (c < 0x7f)
                return c >= 0x20;
        if (c < 0xa1 || c == 0xad)
                return false;
        if ((c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000 ||
            c == 0x1680 || c == 0xfeff)
                return false;
        return !(c >= 0xe000 && c < 0xf900) && (c & 0xfffe) != 0xfffe && c < 0xe0000;
}

static void add_escaped(struct nd_text *text, uint32_t c) {
        static const struct {
                uint32_t character;
                const char *escape;
        } names[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\a', "\\a"}, {'\b', "\\b"}, {'\f', "\\f"},
                     {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}, {'\v', "\\v"}};

        for (size_t i = 0; i < nd_count_of(names); i++)
                if (names[i].character == c) {
                        nd_text_add(text, names[i].escape);
                        return;
                }
        if (c < 0x20 || c == 0x7f)
                nd_text_addf(text, "\\x%02x", c);
        else if (c < 0x10000)
                nd_text_addf(text, "\\u%04x", c);
        else
                nd_text_addf(text, "\\U%08x", c);
}

void nd_text_add_quoted(struct nd_text *text, const char *bytes, size_t length) {
        nd_text_add(text, "\"");
        for (size_t i = 0; i < length;) {
                uint32_t c;
                size_t n = nd_text_utf8_next(bytes + i, length - i, &c);

                if (n == 0) {
                        nd_text_addf(text, "\\x%02x", (unsigned char) bytes[i]);
                        i++;
                        continue;
                }
                if (c == '"' || c == '\\' || !printable(c))
                        add_escaped(text, c);
                else
                        nd_text_append(text, bytes + i, n);
                i += n;
        }
        nd_text_add(text, "\"");
}

void nd_text_add_printable(struct nd_text *text, const char *bytes, size_t length) {
        for (size_t i = 0; i < length;) {
                uint32_t c = 0;
                size_t n = nd_text_utf8_next(bytes + i, length - i, &c);
                bool control = n > 0 && (c < 0x20 || c == 0x7f);
                const char *shown = control ? " " : n == 0 || !printable(c) ? "\xef\xbf\xbd" : bytes + i;
                size_t shown_length = control ? 1 : shown == bytes + i ? n : 3;

                if (text->length + shown_length > text->ceiling) {
                        text->overflow = true;
                        return;
                }
                nd_text_append(text, shown, shown_length);
                i += n > 0 ? n : 1;
        }
}

char *nd_text_quote(const char *string) {
        size_t length = strlen(string);
        nd_autotext struct nd_text text = ND_TEXT(length * 10 + 2);

        nd_text_add_quoted(&text, string, length);
        return nd_text_steal(&text);
}

bool nd_has_prefix(const char *text, const char *prefix) {
        return strncmp(text, prefix, strlen(prefix)) == 0;
}
