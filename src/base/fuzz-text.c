/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-text.c - a quoted text is one printable line from which the bytes can be restored; a ceiling
 * is never exceeded */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"

static unsigned hex(const char *digits, int count) {
        unsigned value = 0;

        for (int i = 0; i < count; i++) {
                const char *all = "0123456789abcdef", *at = strchr(all, digits[i]);

                fuzz_require(at && *at);
                value = value * 16 + (unsigned) (at - all);
        }
        return value;
}

static void add_character(struct nd_text *text, unsigned c) {
        char bytes[4];
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

        for (size_t i = n; i > 1; i--, c >>= 6)
                bytes[i - 1] = (char) (0x80 | (c & 0x3f));
        bytes[0] = (char) (lead[n] | c);
        nd_text_append(text, bytes, n);
}

/* Undoes one escape after a backslash; returns how many characters it took. */
static size_t unescape(struct nd_text *text, const char *escape) {
        static const char names[] = "abfnrtv\"\\", values[] = "\a\b\f\n\r\t\v\"\\";
        const char *name = strchr(names, *escape);

        if (name && *name) {
                nd_text_append(text, &values[name - names], 1);
                return 1;
        }
        if (*escape == 'x') {
                nd_text_append(text, &(char) {(char) hex(escape + 1, 2)}, 1);
                return 3;
        }
        fuzz_require(*escape == 'u' || *escape == 'U');
        add_character(text, hex(escape + 1, *escape == 'u' ? 4 : 8));
        return *escape == 'u' ? 5 : 9;
}

static void check_quoting(const char *bytes, size_t size) {
        nd_autotext struct nd_text quoted = ND_TEXT(10 * size + 2), back = ND_TEXT(size);

        nd_text_add_quoted(&quoted, bytes, size);
        fuzz_require(!quoted.overflow);
        fuzz_require(quoted.length >= 2 && quoted.bytes[0] == '"' && quoted.bytes[quoted.length - 1] == '"');
        fuzz_require(nd_text_utf8_valid(quoted.bytes, quoted.length));
        for (size_t i = 1; i < quoted.length - 1;) {
                unsigned char c = (unsigned char) quoted.bytes[i];

                fuzz_require(c >= 0x20 && c != 0x7f && c != '"');
                if (c == '\\')
                        i += 1 + unescape(&back, quoted.bytes + i + 1);
                else
                        nd_text_append(&back, &quoted.bytes[i++], 1);
        }
        fuzz_require(!back.overflow && back.length == size && (size == 0 || memcmp(back.bytes, bytes, size) == 0));
}

static void check_number(const char *text) {
        uint64_t value = 0;
        uint32_t small = 0;
        int r = nd_text_parse_u64(text, UINT64_MAX, &value);

        if (r == 0) {
                nd_autofree char *printed = nd_format("%llu", (unsigned long long) value);
                const char *digits = text + strspn(text, "0");

                fuzz_require(nd_streq(printed, *digits ? digits : "0"));
                fuzz_require((nd_text_parse_u32(text, &small) == 0) == (value <= UINT32_MAX));
        } else {
                fuzz_require(r == -EINVAL || r == -ERANGE);
                fuzz_require(nd_text_parse_u32(text, &small) < 0);
        }
}

/* A printable text is one line of UTF-8 without control characters, also where it is cut off. */
static void check_printable(const char *bytes, size_t size) {
        for (size_t ceiling = 3 * size;; ceiling /= 2) {
                nd_autotext struct nd_text line = ND_TEXT(ceiling);

                nd_text_add_printable(&line, bytes, size);
                fuzz_require(line.length <= ceiling && nd_text_utf8_valid(nd_text_get(&line), line.length));
                for (size_t i = 0; i < line.length; i++)
                        fuzz_require((unsigned char) line.bytes[i] >= 0x20 && line.bytes[i] != 0x7f);
                if (ceiling == 0)
                        return;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);
        nd_autotext struct nd_text cut = ND_TEXT(size / 2), clean = ND_TEXT(3 * size);

        check_quoting((const char *) data, size);
        check_number(text);
        check_printable((const char *) data, size);
        nd_text_add_quoted(&cut, (const char *) data, size);
        fuzz_require(cut.length <= size / 2 && cut.overflow);
        nd_text_add_utf8(&clean, (const char *) data, size);
        fuzz_require(!clean.overflow && nd_text_utf8_valid(nd_text_get(&clean), clean.length));
        if (nd_text_utf8_valid((const char *) data, size))
                fuzz_require(clean.length == size && (size == 0 || memcmp(clean.bytes, data, size) == 0));
        return 0;
}
