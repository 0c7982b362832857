/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c - compares results with a file of expected ones, as a unit test of policies
 *
 *      - name: web                       kind: Deployment (optional)
 *        level: baseline                 levelWithUserNamespace: restricted
 *        constraint: restricted-v2       constraintWithUserNamespace: restricted-v3, or none
 *        valid: true
 *
 * Keys that are not given are not compared. An expectation without a matching manifest fails,
 * too. */
#include "base/yaml.h"
#include "cli/core/input.h"
#include "cli/lint/lint.h"

struct expectation {
        const char *kind;
        const char *name;
        const char *levels[LINT_SIDES];
        const char *constraints[LINT_SIDES];
        enum nd_shape_switch valid;
};

static const struct nd_shape_field expectation_fields[] = {
        {.name = "kind", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct expectation, kind)},
        {.name = "name", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct expectation, name)},
        {.name = "level", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct expectation, levels[LINT_HOST])},
        {.name = "levelWithUserNamespace", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct expectation, levels[LINT_USERNS])},
        {.name = "constraint", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct expectation, constraints[LINT_HOST])},
        {.name = "constraintWithUserNamespace",
         .kind = ND_SHAPE_TEXT,
         .offset = offsetof(struct expectation, constraints[LINT_USERNS])},
        {.name = "valid", .kind = ND_SHAPE_SWITCH, .offset = offsetof(struct expectation, valid)},
        {},
};
static const struct nd_shape expectation_shape = {.size = sizeof(struct expectation), .fields = expectation_fields};

/* An unknown key would make a test that cannot fail. */
static struct nd_error *check_keys(yyjson_val *object) {
        yyjson_obj_iter members;

        yyjson_obj_iter_init(object, &members);
        for (yyjson_val *key; (key = yyjson_obj_iter_next(&members));) {
                bool known = false;

                for (const struct nd_shape_field *field = expectation_fields; field->name; field++)
                        known |= yyjson_equals_str(key, field->name);
                if (!known)
                        return nd_error_new(ND_INVALID, 0, "unknown key '%s'", yyjson_get_str(key));
        }
        return nullptr;
}

static void compare(struct cli_lint *lint, struct cli_lint_subject *subject, const char *what, const char *expected,
                    const char *found) {
        if (expected && !nd_streq(expected, found))
                nd_vector_push(&subject->broken,
                               nd_arena_format(&lint->arena, "%s: expected %s, found %s", what, expected, found));
}

static void compare_all(struct cli_lint *lint, struct cli_lint_subject *subject, const struct expectation *expectation) {
        const struct cli_lint_result *host = &subject->sides[LINT_HOST], *userns = &subject->sides[LINT_USERNS];
        bool valid = subject->invalid[0] == '\0';

        compare(lint, subject, "level", expectation->levels[LINT_HOST],
                host->obstacle[0] == '\0' ? nd_podsecurity_level_name(host->level) : "none");
        compare(lint, subject, "levelWithUserNamespace", expectation->levels[LINT_USERNS],
                userns->obstacle[0] == '\0' ? nd_podsecurity_level_name(userns->level) : "none");
        compare(lint, subject, "constraint", expectation->constraints[LINT_HOST],
                host->constraint && host->obstacle[0] == '\0' ? host->constraint : "none");
        compare(lint, subject, "constraintWithUserNamespace", expectation->constraints[LINT_USERNS],
                userns->constraint && userns->obstacle[0] == '\0' ? userns->constraint : "none");
        if (expectation->valid != ND_UNSET)
                compare(lint, subject, "valid", expectation->valid == ND_ON ? "true" : "false", valid ? "true" : "false");
}

static struct nd_error *take_expectation(struct cli_lint *lint, yyjson_val *object) {
        struct expectation expectation = {};
        bool met = false;

        nd_try(nd_shape_decode(&expectation_shape, object, &lint->arena, &expectation));
        nd_try(check_keys(object));
        if (!expectation.name)
                return nd_error_new(ND_INVALID, 0, "missing 'name'");
        nd_vector_each (subject, &lint->subjects) {
                if (!nd_streq(subject->workload.name, expectation.name) ||
                    (expectation.kind && !nd_streq(subject->workload.kind, expectation.kind)))
                        continue;
                met = true;
                compare_all(lint, subject, &expectation);
        }
        if (!met)
                nd_vector_push(&lint->broken, nd_arena_format(&lint->arena, "%s%s%s: expected, but not in any file",
                                                              nd_kube_or_empty(expectation.kind), expectation.kind ? " " : "",
                                                              expectation.name));
        return nullptr;
}

struct nd_error *cli_lint_expect(struct cli_lint *lint, const char *path) {
        nd_autofree char *bytes = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_arr_iter items;
        size_t length;

        nd_try(cli_input_read(path, LINT_BYTES, &bytes, &length));
        nd_try(nd_error_wrap(nd_yaml_parse(bytes, length, LINT_BYTES, &doc), "%s", path));
        if (!yyjson_is_arr(yyjson_doc_get_root(doc)) || yyjson_arr_size(yyjson_doc_get_root(doc)) == 0)
                return nd_error_new(ND_INVALID, 0, "%s: not a list of expectations", path);
        yyjson_arr_iter_init(yyjson_doc_get_root(doc), &items);
        for (size_t i = 0; yyjson_arr_iter_has_next(&items); i++)
                nd_try(nd_error_wrap(take_expectation(lint, yyjson_arr_iter_next(&items)), "%s: item %zu", path, i + 1));
        return nullptr;
}
