/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "base/text.h"
#include "base/yaml.h"
#include "cli/lint/lint.h"
#include "sys/file.h"

struct nd_error *cli_lint_file(const char *path, char **ret, size_t *ret_length) {
        nd_autotext struct nd_text text = ND_TEXT(LINT_BYTES);
        char buffer[8192];
        size_t count;

        if (!nd_streq(path, "-"))
                return nd_file_read(AT_FDCWD, path, LINT_BYTES, ret, ret_length);
        while ((count = fread(buffer, 1, sizeof buffer, stdin)) > 0)
                nd_text_append(&text, buffer, count);
        if (ferror(stdin))
                return nd_error_new(ND_UNAVAILABLE, errno, "read standard input");
        if (text.overflow)
                return nd_error_new(ND_INVALID, 0, "standard input exceeds %d bytes", LINT_BYTES);
        *ret_length = text.length;
        *ret = text.length > 0 ? nd_text_steal(&text) : nd_strdup("");
        return nullptr;
}

/* State while a file is read. */
struct reading {
        struct cli_lint *lint;
        const char *file;
};

static struct nd_error *take_object(struct reading *r, yyjson_val *object, size_t line) {
        struct cli_lint_subject subject = {.file = r->file, .line = line};

        nd_try(nd_workload_decode(object, &r->lint->arena, &subject.workload));
        if (!subject.workload.kind)
                return nullptr;
        if (r->lint->subjects.count >= LINT_SUBJECTS)
                return nd_error_new(ND_EXHAUSTED, 0, "limit of %d pods exceeded", LINT_SUBJECTS);
        nd_vector_push(&r->lint->subjects, subject);
        return nullptr;
}

static struct nd_error *take_document(yyjson_doc *doc, size_t line, void *userdata) {
        struct reading *r = userdata;
        yyjson_val *root = yyjson_doc_get_root(doc), *items = yyjson_obj_get(root, "items");
        yyjson_arr_iter iter;

        if (yyjson_is_null(root))
                return nullptr;
        if (!yyjson_equals_str(yyjson_obj_get(root, "kind"), "List") || !yyjson_is_arr(items))
                return nd_error_wrap(take_object(r, root, line), "line %zu", line);
        yyjson_arr_iter_init(items, &iter);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&iter));)
                nd_try(nd_error_wrap(take_object(r, item, line), "line %zu", line));
        return nullptr;
}

struct nd_error *cli_lint_read(struct cli_lint *lint, const char *path) {
        struct reading r = {.lint = lint, .file = path};
        nd_autofree char *bytes = nullptr;
        nd_autoerror struct nd_error *not_json = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        size_t length = 0;

        nd_try(cli_lint_file(path, &bytes, &length));
        /* The YAML parser accepts most of JSON, but no escaped characters beyond 16 bits. */
        not_json = nd_json_parse(bytes, length, LINT_BYTES, &doc);
        if (!not_json)
                return nd_error_wrap(take_document(doc, 1, &r), "%s", path);
        return nd_error_wrap(nd_yaml_each(bytes, length, LINT_BYTES, take_document, &r), "%s", path);
}

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

static struct nd_error *take_constraints(yyjson_doc *doc, size_t line, void *userdata) {
        yyjson_val *root = yyjson_doc_get_root(doc), *items = yyjson_obj_get(root, "items");
        yyjson_arr_iter iter;

        if (yyjson_is_null(root))
                return nullptr;
        if (!yyjson_is_arr(items))
                return nd_error_wrap(take_constraint(userdata, root), "line %zu", line);
        yyjson_arr_iter_init(items, &iter);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&iter));)
                nd_try(nd_error_wrap(take_constraint(userdata, item), "line %zu", line));
        return nullptr;
}

struct nd_error *cli_lint_read_constraints(struct cli_lint *lint, const char *path) {
        nd_autofree char *bytes = nullptr;
        size_t length = 0;

        nd_try(cli_lint_file(path, &bytes, &length));
        nd_try(nd_error_wrap(nd_yaml_each(bytes, length, LINT_BYTES, take_constraints, lint), "%s", path));
        return lint->sccs.count > 0 ? nullptr : nd_error_new(ND_NOT_FOUND, 0, "no constraints found in %s", path);
}
