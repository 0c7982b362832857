/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/selector.h"

#include <string.h>

#include "base/text.h"

enum {
        NAME_LENGTH = 63,
        PREFIX_LENGTH = 253,
};

static const char alphanumeric[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static const struct nd_shape_field term_fields[] = {
        {.name = "key", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct nd_selector_term, key)},
        {.name = "operator", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct nd_selector_term, operator)},
        {.name = "values", .kind = ND_SHAPE_TEXTS, .offset = offsetof(struct nd_selector_term, values)},
        {},
};
static const struct nd_shape term_shape = {.size = sizeof(struct nd_selector_term), .fields = term_fields};

static const struct nd_shape_field selector_fields[] = {
        {.name = "matchLabels", .kind = ND_SHAPE_PAIRS, .offset = offsetof(struct nd_selector, labels)},
        {.name = "matchExpressions", .kind = ND_SHAPE_LIST, .offset = offsetof(struct nd_selector, terms), .of = &term_shape},
        {},
};
const struct nd_shape nd_selector_shape = {.size = sizeof(struct nd_selector), .fields = selector_fields};

static bool is_one_of(char c, const char *set) {
        return c != '\0' && strchr(set, c);
}

/* Letters and digits at both ends, also - _ and . in between. */
static bool is_name(const char *text) {
        size_t length = strlen(text);

        if (length == 0 || length > NAME_LENGTH)
                return false;
        for (size_t i = 0; i < length; i++)
                if (!is_one_of(text[i], alphanumeric) && !is_one_of(text[i], "-_."))
                        return false;
        return is_one_of(text[0], alphanumeric) && is_one_of(text[length - 1], alphanumeric);
}

/* A DNS name: lower case labels, joined by dots; a dash only inside a label. */
static bool is_subdomain(const char *text, size_t length) {
        if (length == 0 || length > PREFIX_LENGTH)
                return false;
        for (size_t i = 0; i < length; i++) {
                bool first = i == 0 || text[i - 1] == '.', last = i + 1 == length || text[i + 1] == '.';

                if (text[i] == '.' || text[i] == '-') {
                        if (first || last)
                                return false;
                } else if (!is_one_of(text[i], "0123456789abcdefghijklmnopqrstuvwxyz")) {
                        return false;
                }
        }
        return true;
}

bool nd_kube_label_key_is_valid(const char *key) {
        const char *slash = strchr(key, '/');

        if (!slash)
                return is_name(key);
        return is_subdomain(key, (size_t) (slash - key)) && is_name(slash + 1);
}

bool nd_kube_label_value_is_valid(const char *value) {
        return value[0] == '\0' || is_name(value);
}

enum operator{
        OPERATOR_IN,
        OPERATOR_NOT_IN,
        OPERATOR_EXISTS,
        OPERATOR_DOES_NOT_EXIST,
        OPERATOR_UNKNOWN,
};

static enum operator operator_of(const struct nd_selector_term *term) {
        static const char *const names[] = {"In", "NotIn", "Exists", "DoesNotExist"};
        static_assert(nd_count_of(names) == OPERATOR_UNKNOWN);

        for (size_t i = 0; term->operator&& i<nd_count_of(names); i++)
                if (nd_streq(term->operator, names[i]))
                        return (enum operator) i;
        return OPERATOR_UNKNOWN;
}

static struct nd_error *validate_term(const struct nd_selector_term *term) {
        enum operator operator= operator_of(term);
        bool takes_values = operator== OPERATOR_IN || operator== OPERATOR_NOT_IN;

        if (!term->key || !nd_kube_label_key_is_valid(term->key))
                return nd_error_new(ND_INVALID, 0, "invalid label key '%s'", term->key ? term->key : "");
        if (operator== OPERATOR_UNKNOWN)
                return nd_error_new(ND_INVALID, 0, "\"%s\" is not a valid label selector operator",
                                    term->operator ? term->operator : "");
        if (takes_values && term->values.count == 0)
                return nd_error_new(ND_INVALID, 0, "for 'in', 'notin' operators, values set can't be empty");
        if (!takes_values && term->values.count > 0)
                return nd_error_new(ND_INVALID, 0, "values set must be empty for exists and does not exist");
        for (size_t i = 0; i < term->values.count; i++)
                if (!nd_kube_label_value_is_valid(term->values.items[i]))
                        return nd_error_new(ND_INVALID, 0, "invalid label value '%s'", term->values.items[i]);
        return nullptr;
}

struct nd_error *nd_selector_validate(const struct nd_selector *selector) {
        for (size_t i = 0; i < selector->labels.count; i++) {
                const struct nd_shape_pair *pair = &selector->labels.items[i];

                if (!nd_kube_label_key_is_valid(pair->key))
                        return nd_error_new(ND_INVALID, 0, "matchLabels: invalid label key '%s'", pair->key);
                if (!nd_kube_label_value_is_valid(pair->value))
                        return nd_error_new(ND_INVALID, 0, "matchLabels: invalid label value '%s'", pair->value);
        }
        nd_list_each(term, &selector->terms)
                nd_try(nd_error_wrap(validate_term(term), "matchExpressions[%td]", term - selector->terms.items));
        return nullptr;
}

static bool term_matches(const struct nd_selector_term *term, const struct nd_shape_pairs *labels) {
        const char *value = nd_shape_pairs_get(labels, term->key);

        switch (operator_of(term)) {
        case OPERATOR_IN:
                return value && nd_shape_texts_have(&term->values, value);
        case OPERATOR_NOT_IN:
                return !value || !nd_shape_texts_have(&term->values, value);
        case OPERATOR_EXISTS:
                return value;
        case OPERATOR_DOES_NOT_EXIST:
                return !value;
        default:
                return false;
        }
}

bool nd_selector_matches(const struct nd_selector *selector, const struct nd_shape_pairs *labels) {
        nd_autoerror struct nd_error *error = selector ? nd_selector_validate(selector) : nullptr;

        if (!selector || error)
                return false;
        for (size_t i = 0; i < selector->labels.count; i++) {
                const char *value = nd_shape_pairs_get(labels, selector->labels.items[i].key);

                if (!value || !nd_streq(value, selector->labels.items[i].value))
                        return false;
        }
        nd_list_each(term, &selector->terms) if (!term_matches(term, labels)) return false;
        return true;
}
