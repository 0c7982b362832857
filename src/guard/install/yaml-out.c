/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/yaml-out.h"

#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/yaml.h"

enum {
        INDENT = 2,
        WIDTH = 160, /* a rule of a webhook is one line */
        STREAM_BYTES = 8 << 20,
        SCALAR_BYTES = 2 << 20,
};

static void write_block(yyjson_val *value, int indent, struct nd_text *text);

/* ---- scalars ---- */

/* kubectl reads YAML 1.1, in which some words are booleans. */
static bool is_reserved(const char *string) {
        static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"};

        for (size_t i = 0; i < nd_count_of(words); i++)
                if (strcasecmp(words[i], string) == 0)
                        return true;
        return false;
}

static bool is_plain(const char *string) {
        static const char letters[] = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                          others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
        size_t length;

        nd_assert(string);
        length = strlen(string);
        return length > 0 && strspn(string, letters) > 0 && strspn(string, others) == length && !is_reserved(string);
}

static void write_string(const char *string, struct nd_text *text) {
        if (is_plain(string))
                nd_text_add(text, string);
        else
                nd_json_string(&(struct nd_json_out) {.text = text}, nullptr, string);
}

static void write_scalar(yyjson_val *value, struct nd_text *text) {
        struct nd_json_out out = {.text = text};

        if (yyjson_is_str(value))
                write_string(yyjson_get_str(value), text);
        else if (yyjson_is_bool(value))
                nd_json_bool(&out, nullptr, yyjson_get_bool(value));
        else if (yyjson_is_sint(value))
                nd_json_signed(&out, nullptr, yyjson_get_sint(value));
        else if (yyjson_is_uint(value))
                nd_json_number(&out, nullptr, yyjson_get_uint(value));
        else
                nd_text_add(text, "null");
}

/* ---- values on one line ---- */

static void write_flow(yyjson_val *value, struct nd_text *text) {
        bool is_object = yyjson_is_obj(value);
        yyjson_val *item;
        size_t i, count;

        if (!yyjson_is_ctn(value)) {
                write_scalar(value, text);
                return;
        }
        nd_text_add(text, is_object ? "{" : "[");
        if (is_object) {
                yyjson_val *key;

                yyjson_obj_foreach(value, i, count, key, item) {
                        nd_text_add(text, i > 0 ? ", " : "");
                        write_string(yyjson_get_str(key), text);
                        nd_text_add(text, ": ");
                        write_flow(item, text);
                }
        } else {
                yyjson_arr_foreach(value, i, count, item) {
                        nd_text_add(text, i > 0 ? ", " : "");
                        write_flow(item, text);
                }
        }
        nd_text_add(text, is_object ? "}" : "]");
}

static bool has_containers(yyjson_val *array) {
        yyjson_val *item;
        size_t i, count;

        yyjson_arr_foreach(array, i, count, item) {
                if (yyjson_is_ctn(item))
                        return true;
        }
        return false;
}

/* Writes the value on the rest of this line, if that suits it. */
static bool write_inline(yyjson_val *value, int column, bool is_item, struct nd_text *text) {
        nd_autotext struct nd_text line = ND_TEXT(SCALAR_BYTES);
        bool suits = !yyjson_is_ctn(value) || yyjson_get_len(value) == 0 || (yyjson_is_arr(value) && !has_containers(value)) ||
                     (yyjson_is_obj(value) && is_item);

        if (!suits)
                return false;
        write_flow(value, &line);
        if (yyjson_is_ctn(value) && yyjson_get_len(value) > 0 && (size_t) column + line.length > WIDTH)
                return false;
        nd_text_addf(text, "%s%s\n", is_item ? "" : " ", nd_text_get(&line));
        return true;
}

/* ---- blocks ---- */

static void write_items(yyjson_val *array, int indent, struct nd_text *text) {
        yyjson_val *item;
        size_t i, count;

        yyjson_arr_foreach(array, i, count, item) {
                nd_text_addf(text, "%*s- ", indent, "");
                if (!write_inline(item, indent + INDENT, true, text))
                        write_block(item, indent + INDENT, text);
        }
}

/* Whether a string can be written as lines below its key: a file, such as a certificate. */
static bool is_literal(yyjson_val *value) {
        const char *string = yyjson_get_str(value);
        size_t length = yyjson_get_len(value);

        if (!string || length < 2 || !strchr(string, '\n') || string[length - 1] != '\n' || string[length - 2] == '\n' ||
            *string == ' ' || *string == '\n')
                return false;
        for (const char *c = string; *c; c++)
                if (*c != '\n' && (*c < ' ' || *c >= 0x7f))
                        return false;
        return true;
}

static void write_literal(const char *string, int indent, struct nd_text *text) {
        nd_text_add(text, " |\n");
        for (; *string; string += strcspn(string, "\n") + 1) {
                int length = (int) strcspn(string, "\n");

                nd_text_addf(text, "%*s%.*s\n", length > 0 ? indent : 0, "", length, string);
        }
}

/* The first member follows on the current line if that is a list's item. */
static void write_members(yyjson_val *object, int indent, struct nd_text *text) {
        bool begun = text->length > 0 && nd_text_get(text)[text->length - 1] != '\n';
        yyjson_val *key, *item;
        size_t i, count;

        yyjson_obj_foreach(object, i, count, key, item) {
                size_t length = text->length;

                nd_text_addf(text, "%*s", i > 0 || !begun ? indent : 0, "");
                write_string(yyjson_get_str(key), text);
                nd_text_add(text, ":");
                if (is_literal(item)) {
                        write_literal(yyjson_get_str(item), indent + INDENT, text);
                } else if (!write_inline(item, indent + (int) (text->length - length), false, text)) {
                        nd_text_add(text, "\n");
                        write_block(item, yyjson_is_arr(item) ? indent : indent + INDENT, text);
                }
        }
}

static void write_block(yyjson_val *value, int indent, struct nd_text *text) {
        if (yyjson_is_obj(value))
                write_members(value, indent, text);
        else if (yyjson_is_arr(value))
                write_items(value, indent, text);
}

static struct nd_error *write_document(yyjson_doc *doc, [[maybe_unused]] size_t line, void *userdata) {
        struct nd_text *text = userdata;

        if (text->length > 0)
                nd_text_add(text, "---\n");
        write_block(yyjson_doc_get_root(doc), 0, text);
        return nullptr;
}

void guard_yaml_out_write(const char *documents, struct nd_text *text) {
        nd_autoerror struct nd_error *error = nd_yaml_each(documents, strlen(documents), STREAM_BYTES, write_document, text);

        nd_assert(!error); /* our own output */
}
