/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/labels.h"

struct value {
        const char *text;
        int meaning;
};

static const struct value modes[] = {{"off", GUARD_MODE_OFF}, {"warn", GUARD_MODE_WARN}, {"enforce", GUARD_MODE_ENFORCE}};
static const struct value user_namespaces[] = {{"default", ND_SCC_USERNS_DEFAULT}, {"require", ND_SCC_USERNS_REQUIRE}};

/* Returns the meaning of a known value, or -1. */
static int find(const struct value *values, size_t count, const char *text) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(values[i].text, text))
                        return values[i].meaning;
        return -1;
}

static void refuse(struct nd_field_errors *errors, const char *key, const char *text, const char *known) {
        nd_field_add(errors, ND_FIELD_INVALID, nd_field_text(errors->arena, text), known, "metadata.labels[%s]", key);
}

static void read_mode(const struct nd_shape_pairs *labels, enum guard_mode default_mode, struct guard_labels *ret,
                      struct nd_field_errors *errors) {
        const char *text = nd_shape_pairs_get(labels, GUARD_LABEL_CONSTRAINTS);
        int meaning = text ? find(modes, nd_count_of(modes), text) : (int) default_mode;

        ret->mode = meaning < 0 ? GUARD_MODE_ENFORCE : (enum guard_mode) meaning;
        if (meaning >= 0)
                return;
        refuse(errors, GUARD_LABEL_CONSTRAINTS, text, "must be one of off, warn, enforce");
        ret->consequence = "constraints are enforced";
}

static void read_userns(const struct nd_shape_pairs *labels, struct guard_labels *ret, struct nd_field_errors *errors) {
        const char *text = nd_shape_pairs_get(labels, GUARD_LABEL_USER_NAMESPACES);
        int meaning = text ? find(user_namespaces, nd_count_of(user_namespaces), text) : (int) ND_SCC_USERNS_ASKED;

        ret->userns = meaning < 0 ? ND_SCC_USERNS_ASKED : (enum nd_scc_userns) meaning;
        if (meaning >= 0)
                return;
        refuse(errors, GUARD_LABEL_USER_NAMESPACES, text, "must be one of default, require");
        ret->userns = *text ? ND_SCC_USERNS_REQUIRE : ND_SCC_USERNS_ASKED;
        if (ret->consequence)
                ret->consequence = *text ? "constraints are enforced and user namespaces are required" : ret->consequence;
        else
                ret->consequence = *text ? "user namespaces are required" : "the label has no effect";
}

void guard_labels_read(const struct nd_shape_pairs *labels, enum guard_mode default_mode, struct guard_labels *ret,
                       struct nd_field_errors *errors) {
        *ret = (struct guard_labels) {};
        read_mode(labels, default_mode, ret, errors);
        read_userns(labels, ret, errors);
}
