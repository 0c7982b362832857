/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/scc-import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/yaml.h"
#include "guard/install/template.h"
#include "policy/scc.h"

enum {
        INDENT = 2,
        PATH_BYTES = 512,
        ITEMS = 10000, /* objects of one List, at most */
};

#define OPENSHIFT "security.openshift.io/v1"

/* One object. */
struct source {
        struct guard_import *import;
        size_t line;
        const char *name;
        struct nd_text *text;
};

[[gnu::format(printf, 2, 3)]] static void report(const struct source *s, const char *format, ...) {
        nd_autotext struct nd_text text = ND_TEXT(PATH_BYTES);
        va_list arguments;
        char *line = nullptr;

        va_start(arguments, format);
        if (vasprintf(&line, format, arguments) < 0)
                abort(); /* out of memory, as everywhere */
        va_end(arguments);
        nd_text_add_printable(&text, line, strlen(line));
        s->import->report(s->line, nd_text_get(&text), s->import->userdata);
        free(line);
}

/* ---- fields ---- */

static const struct nd_shape_field *field_of(const struct nd_shape *shape, const char *name) {
        for (const struct nd_shape_field *field = shape->fields; field->name; field++)
                if (nd_streq(field->name, name))
                        return field;
        return nullptr;
}

static void write_members(const struct source *s, struct nd_json_out *out, const struct nd_shape *shape, yyjson_val *object,
                          const char *path);

static void write_raw(struct nd_json_out *out, const char *key, yyjson_val *value) {
        char *json = yyjson_val_write(value, YYJSON_WRITE_NOFLAG, nullptr);

        nd_json_raw(out, key, json ? json : "null");
        free(json);
}

static void write_object(const struct source *s, struct nd_json_out *out, const char *key, const struct nd_shape *shape,
                         yyjson_val *object, const char *path) {
        nd_json_open(out, key, '{');
        write_members(s, out, shape, object, path);
        nd_json_close(out, '}');
}

static void write_list(const struct source *s, struct nd_json_out *out, const struct nd_shape_field *field, yyjson_val *list,
                       const char *path) {
        yyjson_arr_iter items = yyjson_arr_iter_with(list);

        nd_json_open(out, field->name, '[');
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&items));) {
                if (yyjson_is_obj(item))
                        write_object(s, out, nullptr, field->of, item, path);
                else
                        write_raw(out, nullptr, item);
        }
        nd_json_close(out, ']');
}

static void write_member(const struct source *s, struct nd_json_out *out, const struct nd_shape_field *field,
                         yyjson_val *value, const char *path) {
        bool is_list = field->kind == ND_SHAPE_LIST;

        if (field->of && is_list && yyjson_is_arr(value))
                write_list(s, out, field, value, path);
        else if (field->of && !is_list && yyjson_is_obj(value))
                write_object(s, out, field->name, field->of, value, path);
        else
                write_raw(out, field->name, value);
}

static void write_members(const struct source *s, struct nd_json_out *out, const struct nd_shape *shape, yyjson_val *object,
                          const char *path) {
        yyjson_obj_iter members = yyjson_obj_iter_with(object);

        for (yyjson_val *key; (key = yyjson_obj_iter_next(&members));) {
                const char *name = yyjson_get_str(key);
                const struct nd_shape_field *field = field_of(shape, name);
                nd_autofree char *inner = nd_format("%s%s%s", path, *path ? "." : "", name);
                bool is_head =
                        !*path && (nd_streq(name, "apiVersion") || nd_streq(name, "kind") || nd_streq(name, "metadata"));

                if (is_head)
                        continue;
                if (field)
                        write_member(s, out, field, yyjson_obj_iter_get_val(key), inner);
                else
                        report(s, "constraint %s: unknown field '%s' was left out", s->name, inner);
        }
}

/* ---- metadata ---- */

static bool is_of_cluster(const char *key) {
        return nd_streq(key, "kubectl.kubernetes.io/last-applied-configuration") || strstr(key, "release.openshift.io/");
}

static void write_pairs(struct nd_json_out *out, const char *key, yyjson_val *pairs) {
        yyjson_obj_iter members = yyjson_obj_iter_with(pairs);

        if (!yyjson_is_obj(pairs))
                return;
        nd_json_open(out, key, '{');
        for (yyjson_val *name; (name = yyjson_obj_iter_next(&members));)
                if (!is_of_cluster(yyjson_get_str(name)))
                        nd_json_string(out, yyjson_get_str(name), yyjson_get_str(yyjson_obj_iter_get_val(name)));
        nd_json_close(out, '}');
}

static void write_constraint(const struct source *s, yyjson_val *object) {
        nd_autofree char *version = nd_format("%s/v1", s->import->group);
        yyjson_val *metadata = yyjson_obj_get(object, "metadata");
        struct nd_json_out out = {.text = s->text, .indent = INDENT};

        if (s->text->length > 0)
                nd_text_add(s->text, "\n---\n");
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", version);
        nd_json_string(&out, "kind", "SecurityContextConstraints");
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "name", s->name);
        write_pairs(&out, "labels", yyjson_obj_get(metadata, "labels"));
        write_pairs(&out, "annotations", yyjson_obj_get(metadata, "annotations"));
        nd_json_close(&out, '}');
        write_members(s, &out, &nd_scc_shape, object, "");
        nd_json_close(&out, '}');
        nd_text_add(s->text, "\n");
        guard_template_write(guard_template_grant,
                             (const struct guard_template_value[]) {{.name = "group", .value = s->import->group},
                                                                    {.name = "constraint", .value = s->name},
                                                                    {.name = "for_all_users"},
                                                                    {}},
                             s->text);
}

/* ---- objects ---- */

static bool is_default(const char *name) {
        for (size_t i = 0; i < nd_scc_default_count; i++)
                if (nd_streq(nd_scc_defaults[i].scc.metadata.name, name))
                        return true;
        return false;
}

/* What the API server would refuse; false with a report. */
static bool is_valid(const struct source *s, yyjson_val *object) {
        nd_cleanup(nd_arena_done) struct nd_arena arena = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &arena};
        nd_autotext struct nd_text text = ND_TEXT(PATH_BYTES);
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_scc scc = {};

        error = nd_scc_decode(object, &arena, &scc);
        if (!error)
                nd_scc_validate(&scc, &errors);
        if (!error && errors.items.count == 0)
                return true;
        if (!error)
                nd_field_errors_print(&errors, &text);
        report(s, "constraint %s: %s", s->name, error ? nd_error_text(error) : nd_text_get(&text));
        return false;
}

static void take_object(struct source *s, yyjson_val *object) {
        const char *version = yyjson_get_str(yyjson_obj_get(object, "apiVersion"));
        const char *kind = yyjson_get_str(yyjson_obj_get(object, "kind"));

        s->name = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "name"));
        if (!kind || !version || !nd_streq(kind, "SecurityContextConstraints") ||
            (!nd_streq(version, OPENSHIFT) && !nd_streq(version, "v1"))) {
                report(s, "%s '%s' of %s was left out: it is not a SecurityContextConstraints of " OPENSHIFT,
                       kind ? kind : "object", s->name ? s->name : "", version ? version : "no apiVersion");
                s->import->left_out++;
        } else if (!s->name || !*s->name) {
                report(s, "a constraint has no name");
                s->import->invalid++;
        } else if (is_default(s->name) && !s->import->all) {
                report(s, "constraint %s was left out: the guard has its own of this name (--all imports it as well)",
                       s->name);
                s->import->left_out++;
        } else if (!is_valid(s, object)) {
                s->import->invalid++;
        } else {
                write_constraint(s, object);
                s->import->imported++;
        }
}

struct reader {
        struct guard_import *import;
        struct nd_text *text;
};

static struct nd_error *take_document(const struct nd_yaml_manifest *manifest, void *userdata) {
        struct reader *reader = userdata;
        struct source source = {.import = reader->import, .line = manifest->line, .text = reader->text};
        yyjson_val *root = yyjson_doc_get_root(manifest->doc), *list = yyjson_obj_get(root, "items");
        yyjson_arr_iter items = yyjson_arr_iter_with(list);

        if (!root || yyjson_is_null(root))
                return nullptr;
        if (!yyjson_is_arr(list)) {
                take_object(&source, root);
                return nullptr;
        }
        if (yyjson_arr_size(list) > ITEMS)
                return nd_error_new(ND_INVALID, 0, "line %zu: a list of more than %d objects", manifest->line, ITEMS);
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&items));)
                take_object(&source, item);
        return nullptr;
}

struct nd_error *guard_import_read(struct guard_import *import, const char *bytes, size_t length, struct nd_text *ret) {
        struct reader reader = {.import = import, .text = ret};

        nd_try(nd_yaml_manifests(bytes, length, GUARD_IMPORT_BYTES, take_document, &reader));
        return ret->overflow ? nd_error_new(ND_INVALID, 0, "the result has more than %zu bytes", ret->ceiling) : nullptr;
}
