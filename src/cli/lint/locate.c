/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <strings.h>

#include "cli/lint/lint.h"

/* The member of an object. Some paths of the API server have the case of Go's names:
 * "spec.HostPID". */
static yyjson_val *find_key(yyjson_val *object, const char *name, size_t length) {
        yyjson_val *key, *near = nullptr;
        yyjson_obj_iter members;

        yyjson_obj_iter_init(object, &members);
        while ((key = yyjson_obj_iter_next(&members))) {
                if (yyjson_get_len(key) != length)
                        continue;
                if (memcmp(unsafe_yyjson_get_str(key), name, length) == 0)
                        return key;
                if (!near && strncasecmp(unsafe_yyjson_get_str(key), name, length) == 0)
                        near = key;
        }
        return near;
}

/* One step of a path: a name up to a dot or a bracket, or what is between brackets. */
static const char *next_step(const char *path, const char **ret_name, size_t *ret_length) {
        const char *end;

        if (*path == '.')
                path++;
        if (*path == '[') {
                end = strchr(++path, ']');
                end = end ? end : path + strlen(path);
        } else {
                end = path + strcspn(path, ".[");
        }
        *ret_name = path;
        *ret_length = (size_t) (end - path);
        return end + (*end == ']');
}

size_t cli_lint_line(const struct cli_lint_object *object, const char *path) {
        yyjson_val *value = object->value;
        size_t line = object->line, length, found;
        const char *name;

        while (*path && value) {
                yyjson_val *place;

                path = next_step(path, &name, &length);
                if (yyjson_is_arr(value)) {
                        place = value = yyjson_arr_get(value, strtoull(name, nullptr, 10));
                } else {
                        place = yyjson_is_obj(value) ? find_key(value, name, length) : nullptr;
                        value = place ? yyjson_obj_iter_get_val(place) : nullptr;
                }
                found = place ? nd_json_lines_of(object->lines, object->doc, place) : 0;
                line = found > 0 ? found : line;
        }
        return line;
}

static void locate_finding(struct cli_lint *lint, const struct cli_lint_object *object, const struct cli_lint_subject *subject,
                           const char *check, struct cli_lint_fields *ret) {
        const struct nd_podsecurity_rule rule = {.level = subject->target, .version = lint->version};
        nd_autoarena struct nd_arena arena = {};
        nd_cleanup(nd_advice_done) struct nd_advice fields = {};

        nd_advice_fields(&subject->workload.pod, &rule, check, &arena, &fields);
        ret->items = nd_arena_alloc(&lint->arena, fields.edits.count < LINT_CAUSES ? fields.edits.count : LINT_CAUSES,
                                    sizeof *ret->items);
        nd_vector_each (edit, &fields.edits) {
                const char *path;

                if (edit->follows || ret->count == LINT_CAUSES)
                        continue;
                path = nd_arena_format(&lint->arena, "%s%s", subject->workload.prefix, edit->path);
                ret->items[ret->count++] = (struct cli_lint_field) {.path = path, .line = cli_lint_line(object, path)};
        }
}

void cli_lint_locate(struct cli_lint *lint, const struct cli_lint_object *object, struct cli_lint_subject *subject) {
        for (size_t i = 0; i < subject->findings.count; i++)
                locate_finding(lint, object, subject, subject->findings.items[i].check, &subject->causes[i]);
        subject->invalid_line = cli_lint_line(object, subject->invalid_field);
}
