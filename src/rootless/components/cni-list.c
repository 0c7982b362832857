/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/cni-list.h"

#include <net/if.h>
#include <string.h>

#include "base/json.h"
#include "sys/file.h"

enum { LIST_BYTES = 64 * 1024, PLUGINS = 32 };

void rootless_cni_list_done(struct rootless_cni_list *list) {
        free(list->text);
        free(list->bridge);
        nd_strings_done(&list->plugins);
        *list = (struct rootless_cni_list) {};
}

static bool is_program(const char *name) {
        return name && *name && *name != '.' && !strchr(name, '/');
}

static struct nd_error *take_plugin(yyjson_val *plugin, struct rootless_cni_list *list) {
        const char *type = yyjson_get_str(yyjson_obj_get(plugin, "type"));
        yyjson_val *ipam = yyjson_obj_get(plugin, "ipam");
        const char *ipam_type = yyjson_get_str(yyjson_obj_get(ipam, "type"));

        if (!is_program(type) || (ipam_type && !is_program(ipam_type)))
                return nd_error_new(ND_INVALID, 0, "not a CNI network configuration list: a plugin has no valid type");
        if (!nd_strings_add_within(&list->plugins, PLUGINS, type) ||
            (ipam_type && !nd_strings_add_within(&list->plugins, PLUGINS, ipam_type)))
                return nd_error_new(ND_INVALID, 0, "more than %d CNI plugins", PLUGINS);
        return nullptr;
}

static struct nd_error *take_bridge(yyjson_val *plugin, struct rootless_cni_list *list) {
        const char *bridge = yyjson_get_str(yyjson_obj_get(plugin, "bridge"));

        if (!nd_streq(list->plugins.items[0], "bridge"))
                return nullptr;
        if (!bridge)
                bridge = "cni0"; /* the plugin's default */
        if (!*bridge || strlen(bridge) >= IF_NAMESIZE || strchr(bridge, '/'))
                return nd_error_new(ND_INVALID, 0, "'%s' is not the name of a network interface", bridge);
        list->bridge = nd_strdup(bridge);
        return nullptr;
}

struct nd_error *rootless_cni_list_read(const char *path, struct rootless_cni_list *ret) {
        nd_cleanup(rootless_cni_list_done) struct rootless_cni_list list = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_arr_iter plugins;
        yyjson_val *plugin, *root;
        size_t length;

        nd_try(nd_file_read_any(path, LIST_BYTES, &list.text, &length));
        nd_try(nd_error_wrap(nd_json_parse(list.text, length, LIST_BYTES, &doc), "%s", path));
        root = yyjson_doc_get_root(doc);
        plugins = yyjson_arr_iter_with(yyjson_obj_get(root, "plugins"));
        while ((plugin = yyjson_arr_iter_next(&plugins)))
                nd_try(nd_error_wrap(take_plugin(plugin, &list), "%s", path));
        if (list.plugins.count == 0 || !yyjson_is_str(yyjson_obj_get(root, "name")) ||
            !yyjson_is_str(yyjson_obj_get(root, "cniVersion")))
                return nd_error_new(ND_INVALID, 0,
                                    "%s: not a CNI network configuration list: it needs name, cniVersion and plugins", path);
        nd_try(nd_error_wrap(take_bridge(yyjson_arr_get_first(yyjson_obj_get(root, "plugins")), &list), "%s", path));
        *ret = nd_take(list, (struct rootless_cni_list) {});
        return nullptr;
}
