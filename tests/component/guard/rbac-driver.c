/* SPDX-License-Identifier: Apache-2.0 */
/* rbac-driver.c - the guard's RBAC index behind JSON lines
 *
 * An object with a kind is a role or a binding and is added to the index; any other line is a
 * query, {"user", "groups", "namespace", "name"}, and is answered with yes or no.
 * test_differentials.py sends the same to an API server. */
#include <stdio.h>
#include <stdlib.h>

#include "guard/access/rbac.h"

enum {
        LINE = 8 << 20,
};

struct question {
        const char *user, *namespace, *name;
        struct nd_shape_texts groups;
};

static const struct nd_shape_field question_fields[] = {
        {.name = "user", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct question, user)},
        {.name = "namespace", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct question, namespace)},
        {.name = "name", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct question, name)},
        {.name = "groups", .kind = ND_SHAPE_TEXTS, .offset = offsetof(struct question, groups)},
        {},
};
static const struct nd_shape question_shape = {.size = sizeof(struct question), .fields = question_fields};

static void put(struct guard_rbac *rbac, const char *kind, yyjson_val *object) {
        if (nd_streq(kind, "Role"))
                guard_rbac_put_role(rbac, GUARD_SCOPE_NAMESPACE, object);
        else if (nd_streq(kind, "ClusterRole"))
                guard_rbac_put_role(rbac, GUARD_SCOPE_CLUSTER, object);
        else if (nd_streq(kind, "RoleBinding"))
                guard_rbac_put_binding(rbac, GUARD_SCOPE_NAMESPACE, object);
        else if (nd_streq(kind, "ClusterRoleBinding"))
                guard_rbac_put_binding(rbac, GUARD_SCOPE_CLUSTER, object);
        else
                exit(EXIT_FAILURE);
}

static void take(struct guard_rbac *rbac, const char *line, size_t length) {
        struct question question = {};
        nd_autoarena struct nd_arena arena = {};
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error = nd_json_parse(line, length, LINE, &doc);
        yyjson_val *root = error ? nullptr : yyjson_doc_get_root(doc);
        const char *kind = yyjson_get_str(yyjson_obj_get(root, "kind"));

        if (kind) {
                put(rbac, kind, root);
                return;
        }
        if (!error)
                error = nd_shape_decode(&question_shape, root, &arena, &question);
        if (error) {
                (void) fprintf(stderr, "rbac-driver: %s: %s\n", nd_error_text(error), line);
                exit(EXIT_FAILURE);
        }
        (void) puts(guard_rbac_allows(rbac,
                                      &(struct guard_subject) {.name = question.user, .uid = "", .groups = question.groups},
                                      question.namespace, question.name)
                            ? "yes"
                            : "no");
}

int main(void) {
        nd_autofree char *line = nullptr;
        struct guard_rbac rbac = {};
        size_t capacity = 0;
        ssize_t length;

        guard_rbac_init(&rbac, "security.nodens.io");
        while ((length = getline(&line, &capacity, stdin)) > 0)
                take(&rbac, line, (size_t) length);
        guard_rbac_done(&rbac);
        return EXIT_SUCCESS;
}
