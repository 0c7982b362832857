/* SPDX-License-Identifier: Apache-2.0 */
/* selector.h - label selectors in objects: matchLabels and matchExpressions */
#pragma once

#include "kube/shape.h"

struct nd_selector_term {
        const char *key;
        const char *operator;
        struct nd_shape_texts values;
};

/* An empty selector selects everything; a missing one (nullptr) selects nothing. */
struct nd_selector {
        struct nd_shape_pairs labels;
        nd_list(struct nd_selector_term) terms;
};

extern const struct nd_shape nd_selector_shape;

/* Validates keys, values, operators, and their numbers of values. Call it before use. */
[[nodiscard]] struct nd_error *nd_selector_validate(const struct nd_selector *selector);

/* An invalid selector matches nothing. */
bool nd_selector_matches(const struct nd_selector *selector, const struct nd_shape_pairs *labels);

bool nd_kube_label_key_is_valid(const char *key);     /* "name" or "prefix.example/name" */
bool nd_kube_label_value_is_valid(const char *value); /* "" is valid */
