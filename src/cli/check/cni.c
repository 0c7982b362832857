/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/cni.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/strings.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/program.h"

enum { FILES_MOST = 256 };

static bool is_configuration(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && (nd_streq(dot, ".conflist") || nd_streq(dot, ".conf") || nd_streq(dot, ".json"));
}

/* Adds a plugin's type to the text; an error if its program is missing. */
static struct nd_error *add_plugin(yyjson_val *plugin, const char *plugins, struct nd_text *text) {
        const char *type = yyjson_get_str(yyjson_obj_get(plugin, "type"));
        nd_autofree char *program = nullptr;

        if (!type || *type == '\0' || strchr(type, '/'))
                return nd_error_new(ND_INVALID, 0, "a plugin has no type");
        program = nd_program_find(plugins, type);
        if (!program)
                return nd_error_new(ND_PRECONDITION, 0, "needs the CNI plugin '%s', which is not in %s", type, plugins);
        nd_text_addf(text, "%s%s", text->length > 0 ? ", " : "", type);
        return nullptr;
}

struct nd_error *cli_cni_describe(const char *name, const char *text, size_t length, const char *plugins, char **ret_text) {
        nd_autotext struct nd_text types = ND_TEXT(CNI_CEILING);
        nd_autojson yyjson_doc *doc = nullptr;
        const char *network;
        yyjson_arr_iter list;
        yyjson_val *root, *plugin;

        nd_try(nd_json_parse(text, length, CNI_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        network = yyjson_get_str(yyjson_obj_get(root, "name"));
        list = yyjson_arr_iter_with(yyjson_obj_get(root, "plugins"));
        if (!network)
                return nd_error_new(ND_INVALID, 0, "not a network configuration: it has no name");
        if (!yyjson_obj_get(root, "plugins"))
                nd_try(add_plugin(root, plugins, &types));
        while ((plugin = yyjson_arr_iter_next(&list)))
                nd_try(add_plugin(plugin, plugins, &types));
        if (types.length == 0)
                return nd_error_new(ND_INVALID, 0, "it has no plugins");
        *ret_text = nd_format("%s: network %s with %s", name, network, nd_text_get(&types));
        return nullptr;
}

static struct nd_error *try_file(const char *directory, const char *name, const char *plugins, char **ret_text) {
        nd_autofree char *path = nd_format("%s/%s", directory, name), *text = nullptr;
        struct stat st;

        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a pipe would block */
                return nd_error_new(ND_INVALID, 0, "%s: not a regular file", path);
        nd_try(nd_file_read_kernel(path, CNI_CEILING, &text));
        return nd_error_wrap(cli_cni_describe(path, text, strlen(text), plugins, ret_text), "%s", path);
}

struct nd_error *cli_cni_find(const char *directory, const char *plugins, char **ret_text) {
        nd_cleanup(nd_dir_close) DIR *dir = opendir(directory);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_autoerror struct nd_error *first = nullptr;
        const struct dirent *entry;

        if (!dir)
                return nd_error_new(nd_error_code_of(errno), errno, "open directory '%s'", directory);
        while ((entry = readdir(dir)) && names.count < FILES_MOST)
                if (is_configuration(entry->d_name))
                        nd_strings_add(&names, entry->d_name);
        nd_strings_sort(&names);
        nd_vector_each (name, &names) {
                nd_autoerror struct nd_error *error = try_file(directory, *name, plugins, ret_text);

                /* The daemon skips a file that it cannot parse, not one whose plugin is missing. */
                if (!error || nd_error_code(error) == ND_PRECONDITION)
                        return nd_take_ptr(error);
                if (!first)
                        first = nd_take_ptr(error);
        }
        return first ? nd_take_ptr(first) : nd_error_new(ND_NOT_FOUND, 0, "no configuration in '%s'", directory);
}
