/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/rbac.h"

static const struct nd_shape_field rule_fields[] = {
        ND_FIELD(nd_rbac_rule, "verbs", verbs, TEXTS),
        ND_FIELD(nd_rbac_rule, "apiGroups", groups, TEXTS),
        ND_FIELD(nd_rbac_rule, "resources", resources, TEXTS),
        ND_FIELD(nd_rbac_rule, "resourceNames", names, TEXTS),
        {},
};
const struct nd_shape nd_rbac_rule_shape = ND_SHAPE_OF(nd_rbac_rule, rule_fields);
static const struct nd_shape_field reference_fields[] = {
        ND_FIELD(nd_rbac_reference, "kind", kind, TEXT),
        ND_FIELD(nd_rbac_reference, "name", name, TEXT),
        {},
};
const struct nd_shape nd_rbac_reference_shape = ND_SHAPE_OF(nd_rbac_reference, reference_fields);
static const struct nd_shape_field subject_fields[] = {
        ND_FIELD(nd_rbac_subject, "kind", kind, TEXT),
        ND_FIELD(nd_rbac_subject, "name", name, TEXT),
        ND_FIELD(nd_rbac_subject, "namespace", namespace, TEXT),
        {},
};
const struct nd_shape nd_rbac_subject_shape = ND_SHAPE_OF(nd_rbac_subject, subject_fields);

bool nd_rbac_has(const struct nd_shape_texts *texts, const char *text) {
        return nd_shape_texts_have(texts, "*") || nd_shape_texts_have(texts, text);
}
