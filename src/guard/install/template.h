/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - Kubernetes objects from YAML templates, written as JSON
 *
 * Templates are the *.yaml files of this folder, embedded by the build. They are YAML with these
 * additions:
 *      ${name}         in a string: the value; a member or item whose value is not set is left out
 *      $if: name       first in an object: the object is left out unless the value is set
 *      $unless: name   first in an object: the object is left out if the value is set
 *      $each: name     in an object of a list: repeats the object for each item of the value, a
 *                      list separated by commas; ${item} is the item */
#pragma once

#include "base/text.h"

struct guard_template_value {
        const char *name;
        const char *value; /* nullptr: not set */
        bool is_number;    /* a string that is only this value is written without quotes */
};

/* Appends the objects of a template, each a document of a YAML stream. values ends with an empty
 * entry. An invalid template, or one with an unknown value, is a programming error. */
void guard_template_write(const char *template, const struct guard_template_value *values, struct nd_text *text);

/* ---- the templates (generated from the *.yaml files by embed.py) ---- */

extern const char guard_template_admission[];
extern const char guard_template_authorization[];
extern const char guard_template_authorization_kubeconfig[];
extern const char guard_template_authorizer[];
extern const char guard_template_crd[];
extern const char guard_template_deployment[];
extern const char guard_template_floor[];
extern const char guard_template_grant[];
extern const char guard_template_guard_kubeconfig[];
extern const char guard_template_kubeconfig[];
extern const char guard_template_network[];
extern const char guard_template_nodes[];
extern const char guard_template_rbac[];
extern const char guard_template_webhooks[];
