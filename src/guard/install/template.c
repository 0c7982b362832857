/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/template.h"

#include <string.h>

#include "base/assert.h"
#include "base/yaml.h"

enum {
        INDENT = 2,
        TEMPLATE_BYTES = 1 << 20,
        STRING_BYTES = 2 << 20, /* may contain a bundle of certificates */
        ITEM_LENGTH = 64,       /* of $each; longer ones are truncated */
};

struct writer {
        const struct guard_template_value *values;
        const char *item; /* of the innermost $each; nullptr: none */
        struct nd_json_out out;
};

static void write_value(struct writer *w, const char *key, yyjson_val *value);

static struct guard_template_value lookup(const struct writer *w, const char *name, size_t length) {
        nd_assert(name);
        if (w->item && length == strlen("item") && memcmp(name, "item", length) == 0)
                return (struct guard_template_value) {.name = "item", .value = w->item};
        for (const struct guard_template_value *v = w->values;; v++) {
                nd_assert(v->name);
                if (strlen(v->name) == length && memcmp(v->name, name, length) == 0)
                        return *v;
        }
}

static bool is_set(const struct writer *w, yyjson_val *name) {
        return lookup(w, yyjson_get_str(name), yyjson_get_len(name)).value != nullptr;
}

/* Replaces placeholders. Returns false where a value is not set. */
static bool expand(const struct writer *w, const char *string, struct nd_text *ret, bool *ret_is_number) {
        const char *at;

        while ((at = strstr(string, "${"))) {
                const char *name = at + strlen("${"), *end = strchr(name, '}');
                struct guard_template_value v;

                nd_assert(end);
                v = lookup(w, name, (size_t) (end - name));
                if (!v.value)
                        return false;
                nd_text_append(ret, string, (size_t) (at - string));
                nd_text_add(ret, v.value);
                *ret_is_number |= v.is_number;
                string = end + 1;
        }
        nd_text_add(ret, string);
        return true;
}

static void write_string(struct writer *w, const char *key, const char *string) {
        nd_autotext struct nd_text text = ND_TEXT(STRING_BYTES);
        bool is_number = false;

        if (!expand(w, string, &text, &is_number))
                return;
        if (is_number)
                nd_json_raw(&w->out, key, nd_text_get(&text));
        else
                nd_json_string(&w->out, key, nd_text_get(&text));
}

static bool is_left_out(const struct writer *w, yyjson_val *object) {
        yyjson_val *condition = yyjson_obj_get(object, "$if"), *exception = yyjson_obj_get(object, "$unless");

        return (condition && !is_set(w, condition)) || (exception && is_set(w, exception));
}

static void write_object(struct writer *w, const char *key, yyjson_val *object) {
        yyjson_obj_iter members = yyjson_obj_iter_with(object);
        yyjson_val *name;

        if (is_left_out(w, object))
                return;
        nd_json_open(&w->out, key, '{');
        while ((name = yyjson_obj_iter_next(&members)))
                if (*yyjson_get_str(name) != '$')
                        write_value(w, yyjson_get_str(name), yyjson_obj_iter_get_val(name));
        nd_json_close(&w->out, '}');
}

/* "10.0.0.1/32,10.0.0.2/32" */
static void write_each(struct writer *w, yyjson_val *object, yyjson_val *name) {
        const char *at = lookup(w, yyjson_get_str(name), yyjson_get_len(name)).value;

        for (; at && *at; at += strspn(at, ",")) {
                size_t length = strcspn(at, ",");
                nd_autofree char *item = nd_strndup(at, length < ITEM_LENGTH ? length : ITEM_LENGTH);

                if (length > 0) {
                        w->item = item;
                        write_object(w, nullptr, object);
                        w->item = nullptr;
                }
                at += length;
        }
}

static void write_array(struct writer *w, const char *key, yyjson_val *array) {
        yyjson_arr_iter items = yyjson_arr_iter_with(array);
        yyjson_val *item;

        nd_json_open(&w->out, key, '[');
        while ((item = yyjson_arr_iter_next(&items))) {
                yyjson_val *list = yyjson_obj_get(item, "$each");

                if (list)
                        write_each(w, item, list);
                else
                        write_value(w, nullptr, item);
        }
        nd_json_close(&w->out, ']');
}

static void write_value(struct writer *w, const char *key, yyjson_val *value) {
        if (yyjson_is_obj(value))
                write_object(w, key, value);
        else if (yyjson_is_arr(value))
                write_array(w, key, value);
        else if (yyjson_is_str(value))
                write_string(w, key, yyjson_get_str(value));
        else if (yyjson_is_bool(value))
                nd_json_bool(&w->out, key, yyjson_get_bool(value));
        else
                nd_json_number(&w->out, key, yyjson_get_uint(value));
}

static struct nd_error *write_document(yyjson_doc *doc, [[maybe_unused]] size_t line, void *userdata) {
        yyjson_val *object = yyjson_doc_get_root(doc);
        struct writer *w = userdata;
        struct nd_text *text = w->out.text;

        if (is_left_out(w, object))
                return nullptr;
        if (text->length > 0)
                nd_text_add(text, "\n---\n");
        w->out = (struct nd_json_out) {.text = text, .indent = INDENT};
        write_object(w, nullptr, object);
        nd_text_add(text, "\n");
        return nullptr;
}

void guard_template_write(const char *template, const struct guard_template_value *values, struct nd_text *text) {
        struct writer w = {.values = values, .out = {.text = text}};
        nd_autoerror struct nd_error *error = nd_yaml_each(template, strlen(template), TEMPLATE_BYTES, write_document, &w);

        nd_assert(!error);
}
