/* SPDX-License-Identifier: Apache-2.0 */
/* rbac.h - rules, subjects and references of RBAC objects */
#pragma once

#include "kube/shape.h"

struct nd_rbac_rule {
        struct nd_shape_texts verbs;
        struct nd_shape_texts groups;
        struct nd_shape_texts resources;
        struct nd_shape_texts names;
};

struct nd_rbac_reference {
        const char *kind;
        const char *name;
};

struct nd_rbac_subject {
        const char *kind;
        const char *name;
        const char *namespace;
};

extern const struct nd_shape nd_rbac_rule_shape, nd_rbac_reference_shape, nd_rbac_subject_shape;

/* Whether a list of a rule has the text, or the star that stands for all. */
bool nd_rbac_has(const struct nd_shape_texts *texts, const char *text);
