/* SPDX-License-Identifier: Apache-2.0 */
/* toml.c - see toml.h
 *
 * Theory of operation
 *   Recursive descent over one buffer with a cursor. Depth, number of values and size are limited
 *   before anything is stored. A null byte is an error, so every text in the tree is a C string. */
#include "pull/fetch/toml.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

struct reader {
        const char *at;
        const char *end;
        size_t line;
        size_t values;
};

void pull_toml_free(struct pull_toml *node) {
        if (!node)
                return;
        nd_vector_each (child, &node->children) {
                pull_toml_free(*child);
        }
        nd_vector_done(&node->children);
        free(node->key);
        free(node->text);
        free(node);
}

struct pull_toml *pull_toml_get(const struct pull_toml *table, const char *key) {
        if (!table || table->kind != TOML_TABLE)
                return nullptr;
        nd_vector_each (child, &table->children) {
                if (nd_streq((*child)->key, key))
                        return *child;
        }
        return nullptr;
}

static struct nd_error *wrong(const struct reader *r, const char *what) {
        return nd_error_new(ND_INVALID, 0, "line %zu: %s", r->line, what);
}

static int peek(const struct reader *r) {
        return r->at < r->end ? (unsigned char) *r->at : -1;
}

static bool take(struct reader *r, char c) {
        if (peek(r) != (unsigned char) c)
                return false;
        r->line += c == '\n';
        r->at++;
        return true;
}

static bool take_word(struct reader *r, const char *word) {
        size_t length = strlen(word);

        if ((size_t) (r->end - r->at) < length || memcmp(r->at, word, length) != 0)
                return false;
        r->at += length;
        return true;
}

static void skip_blanks(struct reader *r) {
        while (peek(r) == ' ' || peek(r) == '\t')
                r->at++;
}

static void skip_comment(struct reader *r) {
        if (peek(r) == '#')
                while (r->at < r->end && *r->at != '\n')
                        r->at++;
}

/* Skips blanks, comments and newlines: they may separate lines or elements of an array. */
static void skip_space(struct reader *r) {
        do {
                skip_blanks(r);
                skip_comment(r);
                if (peek(r) == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
                        r->at++;
        } while (take(r, '\n'));
}

static struct nd_error *make(struct reader *r, enum pull_toml_kind kind, struct pull_toml **ret) {
        if (++r->values > TOML_VALUES)
                return nd_error_new(ND_EXHAUSTED, 0, "more than %d values", TOML_VALUES);
        *ret = nd_new(struct pull_toml);
        (*ret)->kind = kind;
        return nullptr;
}

/* Appends a code point as UTF-8; surrogates, values above Unicode and U+0000 are errors. */
static struct nd_error *add_rune(struct reader *r, size_t digits, struct nd_text *text) {
        uint32_t rune = 0;
        char bytes[4];
        size_t count;

        for (size_t i = 0; i < digits; i++, r->at++) {
                int c = peek(r);

                if (c < 0 || !isxdigit(c))
                        return wrong(r, "escape is not hexadecimal");
                rune = rune << 4 | (uint32_t) (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
        }
        if (rune == 0 || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
                return wrong(r, "escape is not a valid character");
        if (rune < 0x80) {
                bytes[0] = (char) rune;
                count = 1;
        } else if (rune < 0x800) {
                bytes[0] = (char) (0xc0 | rune >> 6);
                bytes[1] = (char) (0x80 | (rune & 0x3f));
                count = 2;
        } else if (rune < 0x10000) {
                bytes[0] = (char) (0xe0 | rune >> 12);
                bytes[1] = (char) (0x80 | (rune >> 6 & 0x3f));
                bytes[2] = (char) (0x80 | (rune & 0x3f));
                count = 3;
        } else {
                bytes[0] = (char) (0xf0 | rune >> 18);
                bytes[1] = (char) (0x80 | (rune >> 12 & 0x3f));
                bytes[2] = (char) (0x80 | (rune >> 6 & 0x3f));
                bytes[3] = (char) (0x80 | (rune & 0x3f));
                count = 4;
        }
        nd_text_append(text, bytes, count);
        return nullptr;
}

static struct nd_error *read_escape(struct reader *r, bool multiline, struct nd_text *text) {
        static const char letters[] = "btnfre\"\\", values[] = "\b\t\n\f\r\033\"\\";
        const char *found;
        int c = peek(r);

        if (c < 0)
                return wrong(r, "unterminated string");
        r->at++;
        if (c == 'u')
                return add_rune(r, 4, text);
        if (c == 'U')
                return add_rune(r, 8, text);
        found = strchr(letters, c);
        if (c != '\0' && found) {
                nd_text_append(text, &values[found - letters], 1);
                return nullptr;
        }
        if (!multiline || !strchr(" \t\r\n", c))
                return wrong(r, "unknown escape in a string");
        r->at--;
        while (peek(r) >= 0 && strchr(" \t\r\n", peek(r)))
                (void) (take(r, '\n') || r->at++);
        return nullptr;
}

/* Reads a string in one of TOML's four forms; the cursor is on the first quote. */
static struct nd_error *read_string(struct reader *r, bool multiline_allowed, char **ret) {
        nd_autotext struct nd_text text = ND_TEXT(TOML_BYTES);
        char quote = *r->at, three[4] = {quote, quote, quote, '\0'};
        bool multiline = multiline_allowed && take_word(r, three);

        if (multiline)
                (void) (take_word(r, "\r\n") ? (r->line++, true) : take(r, '\n'));
        else
                r->at++;
        for (;;) {
                int c = peek(r);

                if (c < 0 || (!multiline && c == '\n'))
                        return wrong(r, "unterminated string");
                if (multiline ? take_word(r, three) : take(r, quote)) {
                        if (multiline && take(r, quote)) /* up to two quotes may precede the end */
                                nd_text_append(&text, &quote, 1);
                        if (multiline && take(r, quote))
                                nd_text_append(&text, &quote, 1);
                        *ret = text.length > 0 ? nd_text_steal(&text) : nd_strdup("");
                        return nullptr;
                }
                if (quote == '"' && take(r, '\\')) {
                        nd_try(read_escape(r, multiline, &text));
                        continue;
                }
                if (c == '\0')
                        return wrong(r, "null byte");
                nd_text_append(&text, r->at, 1);
                (void) (take(r, '\n') || r->at++);
        }
}

static bool bare(int c) {
        return isalnum(c) || c == '-' || c == '_';
}

static struct nd_error *read_key(struct reader *r, char **ret) {
        const char *start = r->at;

        if (peek(r) == '"' || peek(r) == '\'')
                return read_string(r, false, ret);
        while (peek(r) >= 0 && bare(peek(r)))
                r->at++;
        if (r->at == start)
                return wrong(r, "missing key");
        *ret = nd_strndup(start, (size_t) (r->at - start));
        return nullptr;
}

/* Returns the table below another one, created if missing; for [[name]] headers the newest element
 * of the array. */
static struct nd_error *descend(struct reader *r, struct pull_toml *from, char **key, struct pull_toml **ret) {
        struct pull_toml *found = pull_toml_get(from, *key);

        if (!found) {
                nd_try(make(r, TOML_TABLE, &found));
                found->key = nd_take_ptr(*key);
                nd_vector_push(&from->children, found);
        }
        if (found->kind == TOML_ARRAY && found->children.count > 0)
                found = found->children.items[found->children.count - 1];
        if (found->kind != TOML_TABLE)
                return wrong(r, "key of a value is used as a table");
        *ret = found;
        return nullptr;
}

/* For a.b.c returns the table that holds the last part, and the last part. */
static struct nd_error *read_path(struct reader *r, struct pull_toml *from, struct pull_toml **ret_table, char **ret_key) {
        nd_autofree char *key = nullptr;

        for (size_t depth = 0;; depth++) {
                if (depth == TOML_DEPTH)
                        return wrong(r, "key has too many parts");
                nd_try(read_key(r, &key));
                skip_blanks(r);
                if (!take(r, '.'))
                        break;
                skip_blanks(r);
                nd_try(descend(r, from, &key, &from));
                free(nd_take_ptr(key));
        }
        *ret_table = from;
        *ret_key = nd_take_ptr(key);
        return nullptr;
}

static struct nd_error *read_value(struct reader *r, size_t depth, struct pull_toml **ret);

/* Reads key = value into a table. */
static struct nd_error *read_pair(struct reader *r, struct pull_toml *table, size_t depth) {
        pull_autotoml struct pull_toml *value = nullptr;
        nd_autofree char *key = nullptr;

        nd_try(read_path(r, table, &table, &key));
        if (!take(r, '='))
                return wrong(r, "missing '='");
        skip_blanks(r);
        if (pull_toml_get(table, key))
                return wrong(r, "duplicate key");
        nd_try(read_value(r, depth, &value));
        value->key = nd_take_ptr(key);
        nd_vector_push(&table->children, nd_take_ptr(value));
        return nullptr;
}

static struct nd_error *read_array(struct reader *r, size_t depth, struct pull_toml *array) {
        for (;;) {
                pull_autotoml struct pull_toml *value = nullptr;

                skip_space(r);
                if (take(r, ']'))
                        return nullptr;
                nd_try(read_value(r, depth + 1, &value));
                nd_vector_push(&array->children, nd_take_ptr(value));
                skip_space(r);
                if (!take(r, ',') && peek(r) != ']')
                        return wrong(r, "missing ',' or ']' in an array");
        }
}

static struct nd_error *read_inline(struct reader *r, size_t depth, struct pull_toml *table) {
        table->defined = true;
        skip_blanks(r);
        if (take(r, '}'))
                return nullptr;
        for (;;) {
                skip_blanks(r);
                nd_try(read_pair(r, table, depth + 1));
                skip_blanks(r);
                if (take(r, '}'))
                        return nullptr;
                if (!take(r, ','))
                        return wrong(r, "missing ',' or '}' in an inline table");
        }
}

/* Reads a number or a date as text up to a delimiter. */
static struct nd_error *read_other(struct reader *r, struct pull_toml *node) {
        const char *start = r->at;

        while (peek(r) > ' ' && peek(r) < 0x7f && !strchr(",]}#\"'=[{", peek(r)))
                r->at++;
        if (r->at == start || !(isalnum((unsigned char) *start) || strchr("+-", *start)))
                return wrong(r, "missing value");
        node->text = nd_strndup(start, (size_t) (r->at - start));
        if (nd_streq(node->text, "true") || nd_streq(node->text, "false")) {
                node->kind = TOML_BOOL;
                node->truth = nd_streq(node->text, "true");
        } else if (isalpha((unsigned char) *start) && !nd_streq(node->text, "inf") && !nd_streq(node->text, "nan")) {
                return wrong(r, "invalid value: not quoted, a number, true or false");
        }
        return nullptr;
}

static struct nd_error *read_value(struct reader *r, size_t depth, struct pull_toml **ret) {
        pull_autotoml struct pull_toml *node = nullptr;

        if (depth >= TOML_DEPTH)
                return wrong(r, "values nested too deeply");
        nd_try(make(r, TOML_OTHER, &node));
        if (peek(r) == '"' || peek(r) == '\'') {
                node->kind = TOML_STRING;
                nd_try(read_string(r, true, &node->text));
        } else if (take(r, '[')) {
                node->kind = TOML_ARRAY;
                nd_try(read_array(r, depth, node));
        } else if (take(r, '{')) {
                node->kind = TOML_TABLE;
                nd_try(read_inline(r, depth, node));
        } else {
                nd_try(read_other(r, node));
        }
        *ret = nd_take_ptr(node);
        return nullptr;
}

/* Handles [[a.b]]: adds a table at the end of an array. */
static struct nd_error *append_table(struct reader *r, struct pull_toml *table, char **key, struct pull_toml **ret) {
        struct pull_toml *array = pull_toml_get(table, *key), *element = nullptr;

        if (!array) {
                nd_try(make(r, TOML_ARRAY, &array));
                array->key = nd_take_ptr(*key);
                nd_vector_push(&table->children, array);
        }
        if (array->kind != TOML_ARRAY || (array->children.count > 0 && array->children.items[0]->kind != TOML_TABLE))
                return wrong(r, "[[ ]] names a key that is not an array of tables");
        nd_try(make(r, TOML_TABLE, &element));
        nd_vector_push(&array->children, element);
        *ret = element;
        return nullptr;
}

static struct nd_error *read_header(struct reader *r, struct pull_toml *root, struct pull_toml **ret) {
        nd_autofree char *key = nullptr;
        struct pull_toml *table;
        bool twice = take(r, '[');

        skip_blanks(r);
        nd_try(read_path(r, root, &table, &key));
        if (!take(r, ']') || (twice && !take(r, ']')))
                return wrong(r, "missing ']' after a table's name");
        if (twice)
                return append_table(r, table, &key, ret);
        nd_try(descend(r, table, &key, &table));
        if (table->defined)
                return wrong(r, "duplicate table");
        table->defined = true;
        *ret = table;
        return nullptr;
}

static struct nd_error *end_of_line(struct reader *r) {
        skip_blanks(r);
        skip_comment(r);
        (void) (peek(r) == '\r' && r->at++);
        if (peek(r) >= 0 && !take(r, '\n'))
                return wrong(r, "unexpected text after a value");
        return nullptr;
}

struct nd_error *pull_toml_parse(const char *bytes, size_t length, struct pull_toml **ret) {
        struct reader r = {.at = bytes, .end = bytes + length, .line = 1};
        pull_autotoml struct pull_toml *root = nullptr;
        struct pull_toml *table;

        if (length > TOML_BYTES)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "more than %d bytes", TOML_BYTES);
        if (!nd_text_utf8_valid(bytes, length))
                return nd_error_new(ND_INVALID, 0, "not UTF-8");
        nd_try(make(&r, TOML_TABLE, &root));
        table = root;
        (void) take_word(&r, "\xef\xbb\xbf");
        for (;;) {
                skip_space(&r);
                if (peek(&r) < 0)
                        break;
                if (take(&r, '['))
                        nd_try(read_header(&r, root, &table));
                else
                        nd_try(read_pair(&r, table, 0));
                nd_try(end_of_line(&r));
        }
        *ret = nd_take_ptr(root);
        return nullptr;
}
