/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/width.h"

#include <langinfo.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

enum {
        MARKS_MOST = 3, /* combining marks on one character; more would cover the lines around it */
};

bool cli_width_utf8(void) {
        return nd_streq(nl_langinfo(CODESET), "UTF-8");
}

/* ---- characters ---- */

static uint32_t decode(const char *bytes, size_t length) {
        static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
        uint32_t value = (unsigned char) bytes[0] & masks[length];

        for (size_t i = 1; i < length; i++)
                value = value << 6 | ((unsigned char) bytes[i] & 0x3f);
        return value;
}

/* Characters of the class Cf: invisible, or they reorder the text around them. */
static bool is_format(uint32_t value) {
        static const struct {
                uint32_t first, last;
        } ranges[] = {
                {0x00ad, 0x00ad}, {0x0600, 0x0605}, {0x061c, 0x061c},   {0x06dd, 0x06dd}, {0x070f, 0x070f},
                {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f}, {0xfe00, 0xfe0f},
                {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
        };

        for (size_t i = 0; i < nd_count_of(ranges); i++)
                if (value >= ranges[i].first && value <= ranges[i].last)
                        return true;
        return false;
}

/* Columns of one character; negative if it must not be printed. */
static int measure(const char *bytes, size_t length, bool utf8) {
        uint32_t value;

        if (length == 0)
                return -1;
        value = decode(bytes, length);
        if (value < 0x80)
                return value < ' ' || value == 0x7f ? -1 : 1;
        return !utf8 || is_format(value) ? -1 : wcwidth((wchar_t) value);
}

char *cli_width_clean(const char *text, bool lines) {
        /* A mark at the beginning has no character. */
        size_t length = strlen(text), marks = MARKS_MOST;
        nd_autotext struct nd_text out = ND_TEXT(length);
        bool utf8 = cli_width_utf8();

        for (size_t i = 0, n; i < length; i += n > 0 ? n : 1) {
                int columns;

                n = nd_text_utf8_length(text + i, length - i);
                columns = measure(text + i, n, utf8);
                marks = columns != 0 ? 0 : marks + 1;
                if (text[i] == '\n' && lines) {
                        nd_text_add(&out, "\n");
                        marks = MARKS_MOST;
                } else if (columns >= 0 && marks <= MARKS_MOST) {
                        nd_text_append(&out, text + i, n);
                } else {
                        nd_text_add(&out, text[i] == '\t' ? " " : "?");
                }
        }
        return nd_strdup(nd_text_get(&out));
}

/* A character of clean text. */
struct glyph {
        size_t bytes;
        size_t columns;
};

static struct glyph glyph_at(const char *text, size_t length) {
        size_t n = nd_text_utf8_length(text, length);
        int columns = measure(text, n, true);

        return (struct glyph) {.bytes = n > 0 ? n : 1, .columns = columns > 0 ? (size_t) columns : 0};
}

/* ---- lines ---- */

static size_t line_columns(const char *line, size_t length) {
        size_t columns = 0;

        for (size_t i = 0; i < length;) {
                struct glyph glyph = glyph_at(line + i, length - i);

                columns += glyph.columns;
                i += glyph.bytes;
        }
        return columns;
}

size_t cli_width_of(const char *text) {
        size_t most = 0;

        for (;;) {
                size_t length = strcspn(text, "\n"), columns = line_columns(text, length);

                most = columns > most ? columns : most;
                if (text[length] == '\0')
                        return most;
                text += length + 1;
        }
}

/* How many bytes of the beginning fit, with the combining marks of the last character. */
static size_t head_bytes(const char *line, size_t length, size_t columns) {
        size_t i = 0;

        while (i < length) {
                struct glyph glyph = glyph_at(line + i, length - i);

                if (glyph.columns > columns)
                        break;
                columns -= glyph.columns;
                i += glyph.bytes;
        }
        return i;
}

/* How many bytes of the end fit; it never begins with a combining mark. */
static size_t tail_bytes(const char *line, size_t length, size_t columns) {
        size_t rest = line_columns(line, length), i = 0;

        while (i < length) {
                struct glyph glyph = glyph_at(line + i, length - i);

                if (rest <= columns && glyph.columns > 0)
                        break;
                rest -= glyph.columns;
                i += glyph.bytes;
        }
        return length - i;
}

char *cli_width_clip(const char *line, size_t length, size_t columns) {
        return nd_strndup(line, head_bytes(line, length, columns));
}

char *cli_width_shorten(const char *text, size_t columns) {
        const char *ellipsis = cli_width_utf8() ? "…" : "...";
        size_t length = strlen(text), dots = cli_width_utf8() ? 1 : strlen(ellipsis), head, tail;

        if (line_columns(text, length) <= columns)
                return nd_strdup(text);
        if (columns < dots + 2)
                return cli_width_clip(text, length, columns);
        tail = (columns - dots) / 2;
        head = columns - dots - tail;
        tail = tail_bytes(text, length, tail);
        return nd_format("%.*s%s%s", (int) head_bytes(text, length, head), text, ellipsis, text + length - tail);
}

/* ---- wrapping ---- */

/* How many bytes of the line go before the next break. */
static size_t piece_bytes(const char *line, size_t length, size_t columns) {
        size_t fits = head_bytes(line, length, columns), at = fits;

        if (fits == length)
                return length;
        while (at > 0 && line[at] != ' ')
                at--;
        if (at == 0) /* a word that is too wide; a character that is too wide is printed anyway */
                return fits > 0 ? fits : glyph_at(line, length).bytes;
        return at;
}

static void wrap_line(struct nd_text *out, const char *line, size_t length, size_t columns) {
        while (length > 0) {
                size_t n = piece_bytes(line, length, columns);

                size_t shown = n;

                while (shown > 0 && line[shown - 1] == ' ')
                        shown--;
                nd_text_append(out, line, shown);
                line += n;
                length -= n;
                for (; length > 0 && *line == ' '; length--)
                        line++;
                if (length > 0)
                        nd_text_add(out, "\n");
        }
}

char *cli_width_wrap(const char *text, size_t columns) {
        nd_autotext struct nd_text out = ND_TEXT(2 * strlen(text));

        for (;;) {
                size_t length = strcspn(text, "\n");

                wrap_line(&out, text, length, columns);
                if (text[length] == '\0')
                        return nd_strdup(nd_text_get(&out));
                nd_text_add(&out, "\n");
                text += length + 1;
        }
}
