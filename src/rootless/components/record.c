/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/record.h"

#include <string.h>

#include "base/json.h"
#include "sys/file.h"

enum {
        NAMES_CEILING = 64,
        STATE_BYTES = 8 * 1024,
        ARGV_CEILING = 256,
};

void rootless_component_record_done(struct rootless_component_record *record) {
        nd_strings_done(&record->argv);
        free(record->path);
        free(record->node_name);
        free(record->after);
        free(record->publish);
        *record = (struct rootless_component_record) {};
}

static struct nd_error *parse_argv(yyjson_val *list, struct nd_strings *ret) {
        yyjson_arr_iter each = yyjson_arr_iter_with(list);
        yyjson_val *word;

        while ((word = yyjson_arr_iter_next(&each)))
                if (!yyjson_is_str(word) || !nd_strings_add_within(ret, ARGV_CEILING, yyjson_get_str(word)))
                        return nd_error_new(ND_INVALID, 0, "invalid command line of a component");
        return ret->count > 0 ? nullptr : nd_error_new(ND_INVALID, 0, "a component has no program");
}

struct nd_error *rootless_component_record_parse(const char *text, size_t length, struct rootless_component_record *ret) {
        nd_cleanup(rootless_component_record_done) struct rootless_component_record record = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *top;
        uint64_t offset;

        nd_try(nd_json_parse(text, length, COMPONENT_RECORD_BYTES, &doc));
        top = yyjson_doc_get_root(doc);
        nd_try(parse_argv(yyjson_obj_get(top, "argv"), &record.argv));
        record.path = nd_json_copy(top, "path");
        record.node_name = nd_json_copy(top, "nodeName");
        record.notifies = yyjson_is_true(yyjson_obj_get(top, "notifies"));
        record.stops_first = yyjson_is_true(yyjson_obj_get(top, "stopsFirst"));
        record.outside = yyjson_is_true(yyjson_obj_get(top, "outside"));
        record.after = nd_json_copy(top, "after");
        record.publish = nd_json_copy(top, "publish");
        offset = yyjson_get_uint(yyjson_obj_get(top, "offset"));
        record.offset = offset <= UINT16_MAX ? (unsigned) offset : 0;
        *ret = nd_take(record, (struct rootless_component_record) {});
        return nullptr;
}

struct nd_error *rootless_component_record_save(const struct rootless_node *node, const char *name,
                                                const struct rootless_component_record *record) {
        nd_autofree char *file = nd_format(COMPONENTS_DIRECTORY "/%s", name);
        nd_autotext struct nd_text text = ND_TEXT(COMPONENT_RECORD_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "argv", '[');
        nd_vector_each (word, &record->argv) {
                nd_json_string(&out, nullptr, *word);
        }
        nd_json_close(&out, ']');
        nd_json_string(&out, "path", record->path);
        nd_json_string(&out, "nodeName", record->node_name);
        nd_json_bool(&out, "notifies", record->notifies);
        nd_json_bool(&out, "stopsFirst", record->stops_first);
        nd_json_bool(&out, "outside", record->outside);
        nd_json_string(&out, "after", record->after ? record->after : "");
        nd_json_string(&out, "publish", record->publish ? record->publish : "");
        nd_json_number(&out, "offset", record->offset);
        nd_json_close(&out, '}');
        if (text.overflow)
                return nd_error_new(ND_INVALID, E2BIG, "the command line of component '%s' is too long", name);
        nd_try(nd_dir_make(node->fd, COMPONENTS_DIRECTORY, 0700));
        return nd_file_replace_unsynced(node->fd, file, text.bytes, text.length, 0600);
}

static bool name_valid(const char *name) {
        return name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name);
}

struct nd_error *rootless_component_record_load(const struct rootless_node *node, const char *name,
                                                struct rootless_component_record *ret) {
        nd_autofree char *file = nd_format(COMPONENTS_DIRECTORY "/%s", name), *text = nullptr;
        struct nd_error *error;
        size_t length;

        if (!name_valid(name))
                return nd_error_new(ND_INVALID, 0, "invalid name of a component '%s'", name);
        error = nd_file_read(node->fd, file, COMPONENT_RECORD_BYTES, &text, &length);
        if (nd_error_errno(error) == ENOENT) {
                nd_error_free(error);
                return nd_error_new(ND_NOT_FOUND, ENOENT, "node '%s' has no component '%s'", node->name, name);
        }
        nd_try(error);
        return nd_error_wrap(rootless_component_record_parse(text, length, ret), "%s/%s", node->path, file);
}

void rootless_component_names(const struct rootless_node *node, struct nd_strings *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings files = {};

        /* a node without Kubernetes does not have the directory */
        nd_ignore(nd_dir_list_files(node->fd, COMPONENTS_DIRECTORY, NAMES_CEILING, &files));
        nd_vector_each (file, &files) {
                if (name_valid(*file))
                        nd_strings_add(ret, *file);
        }
}

/* ---- state ---- */

static const char *const states[] = {"starting", "ready", "stopping"};

void rootless_component_state_done(struct rootless_component_state *state) {
        free(state->status);
        *state = (struct rootless_component_state) {};
}

struct nd_error *rootless_component_state_save(const struct rootless_node *node, const char *name,
                                               const struct rootless_component_state *state) {
        nd_autofree char *file = nd_format(COMPONENTS_DIRECTORY "/%s.state", name);
        nd_autotext struct nd_text text = ND_TEXT(STATE_BYTES);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "pid", (uint64_t) state->pid);
        nd_json_number(&out, "started", state->started);
        nd_json_string(&out, "state", state->state);
        nd_json_string(&out, "status", state->status);
        nd_json_close(&out, '}');
        nd_try(nd_dir_make(node->fd, COMPONENTS_DIRECTORY, 0700));
        return nd_file_replace_unsynced(node->fd, file, nd_text_get(&text), text.length, 0600);
}

static struct nd_error *load_state(const struct rootless_node *node, const char *name, struct rootless_component_state *ret) {
        nd_autofree char *file = nd_format(COMPONENTS_DIRECTORY "/%s.state", name), *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoclose int pidfd = -EBADF;
        yyjson_val *top;
        uint64_t pid;
        size_t length;

        nd_try(nd_file_read(node->fd, file, STATE_BYTES, &text, &length));
        nd_try(nd_json_parse(text, length, STATE_BYTES, &doc));
        top = yyjson_doc_get_root(doc);
        pid = yyjson_get_uint(yyjson_obj_get(top, "pid"));
        ret->started = yyjson_get_uint(yyjson_obj_get(top, "started"));
        if (pid < 2 || pid > INT32_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid state of component '%s'", name);
        nd_try(rootless_process_open((pid_t) pid, ret->started, &pidfd));
        ret->pid = (pid_t) pid;
        for (size_t i = 0; i < nd_count_of(states); i++)
                if (yyjson_equals_str(yyjson_obj_get(top, "state"), states[i]))
                        ret->state = states[i];
        ret->status = nd_json_copy(top, "status");
        return nullptr;
}

void rootless_component_state_load(const struct rootless_node *node, const char *name, struct rootless_component_state *ret) {
        struct rootless_component_state state = {.state = "ended"};

        nd_ignore(load_state(node, name, &state)); /* it has ended then */
        if (!state.status)
                state.status = nd_strdup("");
        *ret = state;
}
