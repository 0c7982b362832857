/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/field.h"

#include <string.h>

enum {
        VALUE_LENGTH = 4096,   /* of a value or path in an error; longer ones are truncated */
        MOST_ERRORS = 1000,    /* more would not be read, and a hostile pod could cause millions */
        COMPARED_ERRORS = 200, /* how many errors are searched for a duplicate */
};

void nd_field_errors_done(struct nd_field_errors *errors) {
        nd_vector_done(&errors->items);
}

static bool same_text(const char *a, const char *b) {
        return a == b || (a && b && nd_streq(a, b));
}

static bool is_there(const struct nd_field_errors *errors, const struct nd_field_error *error) {
        size_t first = errors->items.count > COMPARED_ERRORS ? errors->items.count - COMPARED_ERRORS : 0;

        for (size_t i = first; i < errors->items.count; i++) {
                const struct nd_field_error *other = &errors->items.items[i];

                if (other->problem == error->problem && nd_streq(other->path, error->path) &&
                    same_text(other->value, error->value) && nd_streq(other->detail, error->detail))
                        return true;
        }
        return false;
}

void nd_field_add(struct nd_field_errors *errors, enum nd_field_problem problem, const char *value, const char *detail,
                  const char *path, ...) {
        struct nd_field_error error = {.problem = problem, .value = value, .detail = detail};
        va_list arguments;

        if (errors->items.count >= (errors->quiet ? 1 : MOST_ERRORS))
                return;
        if (errors->quiet) {
                nd_vector_push(&errors->items, ((struct nd_field_error) {.problem = problem, .path = "", .detail = ""}));
                return;
        }
        va_start(arguments, path);
        error.path = nd_arena_format_va(errors->arena, path, arguments);
        va_end(arguments);
        if (!is_there(errors, &error))
                nd_vector_push(&errors->items, error);
}

const char *nd_field_text(struct nd_arena *arena, const char *value) {
        nd_autotext struct nd_text text = ND_TEXT(VALUE_LENGTH);

        nd_text_add_quoted(&text, value, strlen(value));
        return nd_arena_strdup(arena, nd_text_get(&text));
}

/* Go's encoder is safe for HTML: it also escapes <, > and &, and two separators that JavaScript
 * treats as line ends. */
static void add_json(struct nd_text *text, const char *value, size_t length) {
        const unsigned char *c = (const unsigned char *) value;
        bool alone = length <= 1; /* not part of a multi-byte character */

        if (alone && (*c == '"' || *c == '\\'))
                nd_text_addf(text, "\\%c", *c);
        else if (alone && (*c == '\b' || *c == '\f' || *c == '\n' || *c == '\r' || *c == '\t'))
                nd_text_addf(text, "\\%c", "btn?fr"[*c - '\b']);
        else if (alone && (*c < 0x20 || *c == '<' || *c == '>' || *c == '&'))
                nd_text_addf(text, "\\u%04x", *c);
        else
                nd_text_add_utf8(text, value, length);
}

const char *nd_field_json(struct nd_arena *arena, const char *value) {
        nd_autotext struct nd_text text = ND_TEXT(VALUE_LENGTH);
        size_t length = strlen(value);

        nd_text_add(&text, "\"");
        for (size_t i = 0, n; i < length; i += n) {
                n = nd_text_utf8_length(value + i, length - i);
                n = n > 0 ? n : 1;
                if (n == 3 && memcmp(value + i, "\u2028", 3) == 0)
                        nd_text_add(&text, "\\u2028");
                else if (n == 3 && memcmp(value + i, "\u2029", 3) == 0)
                        nd_text_add(&text, "\\u2029");
                else
                        add_json(&text, value + i, n);
        }
        nd_text_add(&text, "\"");
        return nd_arena_strdup(arena, nd_text_get(&text));
}

const char *nd_field_int(struct nd_arena *arena, int64_t value) {
        return nd_arena_format(arena, "%lld", (long long) value);
}

void nd_field_error_print(const struct nd_field_error *error, struct nd_text *text) {
        static const char *const names[] = {
                [ND_FIELD_REQUIRED] = "Required value",
                [ND_FIELD_INVALID] = "Invalid value",
                [ND_FIELD_NOT_SUPPORTED] = "Unsupported value",
                [ND_FIELD_FORBIDDEN] = "Forbidden",
        };
        static_assert(nd_count_of(names) == ND_FIELD_FORBIDDEN + 1);

        nd_text_addf(text, "%s: %s", error->path, names[error->problem]);
        if (error->value)
                nd_text_addf(text, ": %s", error->value);
        if (error->detail[0] != '\0')
                nd_text_addf(text, ": %s", error->detail);
}

void nd_field_errors_print(const struct nd_field_errors *errors, struct nd_text *text) {
        bool several = errors->items.count > 1;

        if (several)
                nd_text_add(text, "[");
        nd_vector_each (error, &errors->items) {
                if (error != errors->items.items)
                        nd_text_add(text, ", ");
                nd_field_error_print(error, text);
        }
        if (several)
                nd_text_add(text, "]");
}
