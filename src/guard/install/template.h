/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - Kubernetes objects from YAML templates, written as JSON
 *
 * Templates are the *.yaml files of this folder, embedded by the build. They are YAML with these
 * additions:
 *      ${name}         in a string: the value; a member or item with a value that is not set is left out
 *      $if: name       first in an object: the object is left out where the value is not set
 *      $unless: name   the same where it is set
 *      $each: name     in an object of a list: repeated for each item of the value, which are separated by commas, as ${item} */
#pragma once

#include "base/text.h"

struct guard_template_value {
        const char *name;
        const char *value; /* nullptr: not set */
        bool is_number;    /* where it is a whole string it is written without quotes */
};

/* Appends the objects of a template, each a YAML document of a stream. values ends with an empty
 * one. A template that cannot be read or names another value is a programming error. */
void guard_template_write(const char *template, const struct guard_template_value *values, struct nd_text *text);

/* ---- the templates (generated from the files of these names by embed.py) ---- */

extern const char guard_template_admission[];
extern const char guard_template_crd[];
extern const char guard_template_grant[];
extern const char guard_template_kubeconfig[];
extern const char guard_template_network[];
extern const char guard_template_rbac[];
extern const char guard_template_webhooks[];
