/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/yaml.h"
#include "cli/core/input.h"
#include "cli/lint/lint.h"
#include "kube/schema.h"

void cli_lint_note_unreadable(struct cli_lint *lint, const char *file, struct nd_error *error) {
        nd_autoerror struct nd_error *owned = error;

        if (lint->unreadable.count < LINT_UNREADABLE)
                nd_vector_push(&lint->unreadable,
                               ((struct cli_lint_unreadable) {.file = nd_arena_strdup(&lint->arena, file),
                                                              .error = nd_arena_strdup(&lint->arena, nd_error_text(owned))}));
}

/* State while a file is read. */
struct reading {
        struct cli_lint *lint;
        const char *file;
};

/* ---- objects of other kinds ---- */

/* Kinds that Kubernetes has itself are named with their group. */
static const char *kind_name(struct cli_lint *lint, const struct nd_workload *workload) {
        return workload->group[0] != '\0' && workload->same_name
                       ? nd_arena_format(&lint->arena, "%s.%s", workload->written, workload->group)
                       : workload->written;
}

static void count_other(struct cli_lint *lint, const struct nd_workload *workload) {
        const char *name = kind_name(lint, workload);
        size_t i = 0;

        while (i < lint->not_judged.count && strcmp(lint->not_judged.items[i].name, name) < 0)
                i++;
        if (i < lint->not_judged.count && nd_streq(lint->not_judged.items[i].name, name)) {
                lint->not_judged.items[i].count++;
        } else if (lint->not_judged.count < LINT_KINDS) {
                nd_vector_push(&lint->not_judged, ((struct cli_lint_kind) {}));
                memmove(&lint->not_judged.items[i + 1], &lint->not_judged.items[i],
                        (lint->not_judged.count - 1 - i) * sizeof *lint->not_judged.items);
                lint->not_judged.items[i] = (struct cli_lint_kind) {.name = name, .count = 1};
        }
}

/* ---- pods ---- */

static void find_unknown(struct cli_lint *lint, const struct cli_lint_object *object, struct cli_lint_subject *subject) {
        struct nd_schema_unknowns found = {};

        subject->unknown_count = nd_schema_check(subject->workload.kind, object->value, &lint->arena, &found);
        nd_vector_each (unknown, &found.items) {
                size_t line = nd_json_lines_of(object->lines, object->doc, unknown->key);

                nd_vector_push(&subject->unknowns, ((struct cli_lint_unknown) {.field = {.path = unknown->path,
                                                                                         .line = line ? line : object->line},
                                                                               .type = unknown->type,
                                                                               .suggestion = unknown->suggestion}));
        }
        nd_vector_done(&found.items);
}

static struct nd_error *take_object(struct reading *r, const struct cli_lint_object *object) {
        struct cli_lint_subject subject = {.file = r->file, .line = object->line};

        nd_try(nd_workload_decode(object->value, &r->lint->arena, &subject.workload));
        if (subject.workload.written[0] == '\0')
                return nd_error_new(ND_INVALID, 0, "an object without 'kind'");
        if (!subject.workload.kind) {
                count_other(r->lint, &subject.workload);
                return nullptr;
        }
        if (r->lint->subjects.count >= LINT_SUBJECTS)
                return nd_error_new(ND_EXHAUSTED, 0, "limit of %d pods exceeded", LINT_SUBJECTS);
        cli_lint_evaluate(r->lint, &subject);
        cli_lint_locate(r->lint, object, &subject);
        find_unknown(r->lint, object, &subject);
        nd_vector_push(&r->lint->subjects, subject);
        return nullptr;
}

static bool is_list(yyjson_val *object) {
        const char *kind = yyjson_get_str(yyjson_obj_get(object, "kind"));
        size_t length = kind ? strlen(kind) : 0;

        return length >= 4 && nd_streq(kind + length - 4, "List") && yyjson_is_arr(yyjson_obj_get(object, "items"));
}

/* An object that cannot be read does not hide the others. */
static void take_objects(struct reading *r, const struct cli_lint_object *object) {
        yyjson_arr_iter iter;
        struct nd_error *error;

        if (!is_list(object->value)) {
                error = take_object(r, object);
                if (error)
                        cli_lint_note_unreadable(r->lint, r->file,
                                                 nd_error_wrap(error, "%s: line %zu", r->file, object->line));
                return;
        }
        yyjson_arr_iter_init(yyjson_obj_get(object->value, "items"), &iter);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&iter));) {
                struct cli_lint_object one = *object;
                size_t line = nd_json_lines_of(object->lines, object->doc, item);

                one.value = item;
                one.line = line > 0 ? line : object->line;
                take_objects(r, &one);
        }
}

static struct nd_error *take_manifest(const struct nd_yaml_manifest *manifest, void *userdata) {
        const struct cli_lint_object object = {.doc = manifest->doc,
                                               .lines = manifest->lines,
                                               .value = yyjson_doc_get_root(manifest->doc),
                                               .line = manifest->line};

        if (!yyjson_is_null(object.value))
                take_objects(userdata, &object);
        return nullptr;
}

/* ---- files ---- */

static struct nd_error *read_bytes(struct reading *r, const char *bytes, size_t length) {
        nd_cleanup(nd_json_lines_done) struct nd_json_lines lines = {};
        nd_autoerror struct nd_error *not_json = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;

        r->lint->bytes += length;
        if (r->lint->bytes > LINT_TOTAL_BYTES)
                return nd_error_new(ND_EXHAUSTED, 0, "more than %d bytes in all files", LINT_TOTAL_BYTES);
        /* The YAML parser accepts most of JSON, but no escaped characters beyond 16 bits. */
        not_json = nd_json_parse(bytes, length, LINT_BYTES, &doc);
        if (not_json)
                return nd_yaml_manifests(bytes, length, LINT_BYTES, take_manifest, r);
        nd_json_lines_scan(bytes, length, &lines);
        return take_manifest(&(struct nd_yaml_manifest) {.doc = doc, .line = 1, .lines = &lines}, r);
}

static void take_file(struct cli_lint *lint, const char *path, const char *bytes, size_t length) {
        struct reading r = {.lint = lint, .file = nd_arena_strdup(&lint->arena, path)};
        struct nd_error *error = read_bytes(&r, bytes, length);

        if (error)
                cli_lint_note_unreadable(lint, path, nd_error_wrap(error, "%s", path));
}

void cli_lint_read(struct cli_lint *lint, const char *path) {
        nd_autofree char *bytes = nullptr;
        struct nd_error *error;
        size_t length = 0;

        if (cli_lint_is_directory(path)) {
                cli_lint_directory(lint, path, take_file);
                return;
        }
        error = cli_input_read(path, LINT_BYTES, &bytes, &length);
        if (error)
                cli_lint_note_unreadable(lint, path, error);
        else
                take_file(lint, path, bytes, length);
}

/* ---- constraints ---- */

static struct nd_error *take_constraint(struct cli_lint *lint, yyjson_val *object) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &lint->arena};
        struct nd_scc *scc = nd_arena_new(&lint->arena, struct nd_scc);
        nd_autotext struct nd_text text = ND_TEXT(4096);

        nd_try(nd_scc_decode(object, &lint->arena, scc));
        nd_scc_validate(scc, &errors);
        nd_field_errors_print(&errors, &text);
        if (errors.items.count > 0)
                return nd_error_new(ND_INVALID, 0, "constraint '%s': %s", nd_kube_or_empty(scc->metadata.name),
                                    nd_text_get(&text));
        nd_vector_push(&lint->sccs, scc);
        return nullptr;
}

static struct nd_error *take_constraints(const struct nd_yaml_manifest *manifest, void *userdata) {
        yyjson_val *root = yyjson_doc_get_root(manifest->doc), *items = yyjson_obj_get(root, "items");
        yyjson_arr_iter iter;

        if (yyjson_is_null(root))
                return nullptr;
        if (!yyjson_is_arr(items))
                return nd_error_wrap(take_constraint(userdata, root), "line %zu", manifest->line);
        yyjson_arr_iter_init(items, &iter);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&iter));)
                nd_try(nd_error_wrap(take_constraint(userdata, item), "line %zu",
                                     nd_json_lines_of(manifest->lines, manifest->doc, item)));
        return nullptr;
}

struct nd_error *cli_lint_read_constraints(struct cli_lint *lint, const char *path) {
        nd_autofree char *bytes = nullptr;
        size_t length = 0;

        nd_try(cli_input_read(path, LINT_BYTES, &bytes, &length));
        nd_try(nd_error_wrap(nd_yaml_manifests(bytes, length, LINT_BYTES, take_constraints, lint), "%s", path));
        return lint->sccs.count > 0 ? nullptr : nd_error_new(ND_NOT_FOUND, 0, "no constraints found in %s", path);
}
