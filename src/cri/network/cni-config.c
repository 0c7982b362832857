/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/network/cni-config.h"

#include <string.h>
#include <strings.h>

#include "base/json-member.h"
#include "base/json.h"
#include "cri/network/bandwidth.h"

enum {
        WORD = 255, /* length of a name, type or version */
};

void cri_cni_config_done(struct cri_cni_config *config) {
        nd_vector_each (plugin, &config->plugins) {
                free(plugin->type);
                free(plugin->json);
        }
        nd_vector_done(&config->plugins);
        free(config->name);
        free(config->version);
        free(config->source);
        *config = (struct cri_cni_config) {};
}

/* yyjson allocates with malloc(), so its output is freed as usual. */
static struct nd_error *print(yyjson_val *value, char **ret) {
        *ret = yyjson_val_write(value, YYJSON_WRITE_NOFLAG, nullptr);
        return *ret ? nullptr : nd_error_new(ND_INTERNAL, 0, "print the CNI configuration as JSON");
}

/* A plugin's type becomes part of a path, a network's name part of files that plugins write. */
static bool is_plain(const char *word) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

        return word[0] && strchr(letters, word[0]) && strspn(word, others) == strlen(word);
}

static struct nd_error *take_capabilities(yyjson_val *object, struct cri_cni_plugin *plugin) {
        yyjson_val *capabilities = nullptr;

        nd_try(nd_json_member_object(object, "capabilities", &capabilities));
        if (!capabilities)
                return nullptr;
        nd_try(nd_json_member_bool(capabilities, "portMappings", &plugin->takes_ports));
        nd_try(nd_json_member_bool(capabilities, "bandwidth", &plugin->takes_bandwidth));
        return nd_json_member_bool(capabilities, "dns", &plugin->takes_dns);
}

static struct nd_error *take_plugin(yyjson_val *object, struct cri_cni_config *config) {
        struct cri_cni_plugin *plugin;
        const char *type = nullptr;

        nd_vector_push(&config->plugins, ((struct cri_cni_plugin) {}));
        plugin = &config->plugins.items[config->plugins.count - 1];
        if (!yyjson_is_obj(object))
                return nd_error_new(ND_INVALID, 0, "plugin %zu is not an object", config->plugins.count);
        nd_try(nd_json_member_text(object, "type", WORD, &type));
        if (!type || !is_plain(type))
                return nd_error_new(ND_INVALID, 0, "plugin %zu: 'type' must be a program name without a path",
                                    config->plugins.count);
        plugin->type = nd_strdup(type);
        nd_try(nd_error_wrap(take_capabilities(object, plugin), "plugin '%s'", type));
        return print(object, &plugin->json);
}

static struct nd_error *take_plugins(yyjson_val *root, struct cri_cni_config *config) {
        yyjson_val *list = nullptr, *object;
        yyjson_arr_iter objects;

        if (!yyjson_obj_get(root, "plugins"))
                return take_plugin(root, config);
        nd_try(nd_json_member_array(root, "plugins", CNI_PLUGINS_MOST, &list));
        if (!list || yyjson_arr_size(list) == 0)
                return nd_error_new(ND_INVALID, 0, "'plugins' is empty");
        objects = yyjson_arr_iter_with(list);
        while ((object = yyjson_arr_iter_next(&objects)))
                nd_try(take_plugin(object, config));
        return nullptr;
}

/* CNI's own library accepts the string as well as the boolean. Other values count as true: an
 * odd value here must not leave the node without a network. */
static bool says_yes(yyjson_val *value) {
        return value && !yyjson_is_false(value) && (!yyjson_is_str(value) || strcasecmp(yyjson_get_str(value), "false") != 0);
}

struct nd_error *cri_cni_config_parse(const char *text, size_t length, struct cri_cni_config *ret) {
        nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {};
        const char *name = nullptr, *version = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;

        nd_try(nd_json_parse(text, length, CNI_CONFIG_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "the network configuration is not an object");
        nd_try(nd_json_member_text(root, "name", WORD, &name));
        nd_try(nd_json_member_text(root, "cniVersion", WORD, &version));
        if (!name || !is_plain(name))
                return nd_error_new(ND_INVALID, 0, "'name' must be letters, digits, '_', '.' and '-'");
        if (version && !is_plain(version) && version[0])
                return nd_error_new(ND_INVALID, 0, "invalid 'cniVersion'");
        config.name = nd_strdup(name);
        /* the specification's default */
        config.version = nd_strdup(version && version[0] ? version : "0.1.0");
        config.disable_check = says_yes(yyjson_obj_get(root, "disableCheck"));
        nd_try(take_plugins(root, &config));
        nd_try(print(root, &config.source));
        *ret = nd_take(config, (struct cri_cni_config) {});
        return nullptr;
}

/* ---- input of a plugin ---- */

static void mutable_done(yyjson_mut_doc **doc) {
        yyjson_mut_doc_free(*doc);
}

static yyjson_mut_val *port_mappings(yyjson_mut_doc *doc, const struct cri_sandbox_request *pod) {
        static const char *const protocols[] = {[PORT_TCP] = "tcp", [PORT_UDP] = "udp", [PORT_SCTP] = "sctp"};
        yyjson_mut_val *list = yyjson_mut_arr(doc);

        nd_vector_each (port, &pod->ports) {
                yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);

                yyjson_mut_obj_add_uint(doc, item, "hostPort", port->host);
                yyjson_mut_obj_add_uint(doc, item, "containerPort", port->container);
                yyjson_mut_obj_add_str(doc, item, "protocol", protocols[port->protocol]);
                yyjson_mut_obj_add_str(doc, item, "hostIP", port->address);
        }
        return list;
}

static void add_strings(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const struct nd_strings *strings) {
        yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, key);

        nd_vector_each (string, strings) {
                yyjson_mut_arr_add_str(doc, list, *string);
        }
}

static void add_dns(yyjson_mut_doc *doc, yyjson_mut_val *runtime, const struct cri_sandbox_request *pod) {
        yyjson_mut_val *words = yyjson_mut_obj_add_obj(doc, runtime, "dns");

        add_strings(doc, words, "servers", &pod->dns_servers);
        add_strings(doc, words, "searches", &pod->dns_searches);
        add_strings(doc, words, "options", &pod->dns_options);
}

/* The burst is the largest that the plugin accepts: an annotation limits the rate only. */
static void add_bandwidth(yyjson_mut_doc *doc, yyjson_mut_val *runtime, const struct cri_bandwidth *limit) {
        yyjson_mut_val *words = yyjson_mut_obj_add_obj(doc, runtime, "bandwidth");

        if (limit->ingress > 0) {
                yyjson_mut_obj_add_uint(doc, words, "ingressRate", limit->ingress);
                yyjson_mut_obj_add_uint(doc, words, "ingressBurst", UINT32_MAX);
        }
        if (limit->egress > 0) {
                yyjson_mut_obj_add_uint(doc, words, "egressRate", limit->egress);
                yyjson_mut_obj_add_uint(doc, words, "egressBurst", UINT32_MAX);
        }
}

static void add_runtime(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct cri_cni_plugin *plugin,
                        const struct cri_sandbox_request *pod) {
        bool ports = plugin->takes_ports && pod->ports.count > 0, dns = plugin->takes_dns && pod->has_dns;
        struct cri_bandwidth limit = {};
        yyjson_mut_val *runtime;

        /* Invalid values were refused before; a pod older than that check has no limit. */
        if (plugin->takes_bandwidth)
                nd_ignore(cri_bandwidth_of(&pod->annotations, &limit));
        if (!ports && !dns && limit.ingress == 0 && limit.egress == 0)
                return;
        runtime = yyjson_mut_obj_add_obj(doc, root, "runtimeConfig");
        if (ports)
                yyjson_mut_obj_add_val(doc, runtime, "portMappings", port_mappings(doc, pod));
        if (dns)
                add_dns(doc, runtime, pod);
        if (limit.ingress > 0 || limit.egress > 0)
                add_bandwidth(doc, runtime, &limit);
}

static struct nd_error *add_previous(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *previous) {
        nd_autojson yyjson_doc *parsed = nullptr;

        if (!previous)
                return nullptr;
        nd_try(nd_json_parse(previous, strlen(previous), CNI_CONFIG_CEILING, &parsed));
        yyjson_mut_obj_add_val(doc, root, "prevResult", yyjson_val_mut_copy(doc, yyjson_doc_get_root(parsed)));
        return nullptr;
}

struct nd_error *cri_cni_config_input(const struct cri_cni_config *config, size_t plugin,
                                      const struct cri_sandbox_request *pod, const char *previous, char **ret) {
        static const char *const ours[] = {"name", "cniVersion", "runtimeConfig", "prevResult"};
        const struct cri_cni_plugin *p = &config->plugins.items[plugin];
        nd_cleanup(mutable_done) yyjson_mut_doc *doc = nullptr;
        nd_autojson yyjson_doc *parsed = nullptr;
        yyjson_mut_val *root;

        nd_try(nd_json_parse(p->json, strlen(p->json), CNI_CONFIG_CEILING, &parsed));
        doc = yyjson_doc_mut_copy(parsed, nullptr);
        root = yyjson_mut_doc_get_root(doc);
        for (size_t i = 0; i < nd_count_of(ours); i++)
                (void) yyjson_mut_obj_remove_key(root, ours[i]);
        yyjson_mut_obj_add_str(doc, root, "name", config->name);
        yyjson_mut_obj_add_str(doc, root, "cniVersion", config->version);
        add_runtime(doc, root, p, pod);
        nd_try(nd_error_wrap(add_previous(doc, root, previous), "result of the plugin before '%s'", p->type));
        *ret = yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, nullptr);
        return *ret ? nullptr : nd_error_new(ND_INTERNAL, 0, "print the CNI configuration as JSON");
}

bool cri_cni_config_del_takes_result(const struct cri_cni_config *config) {
        return !nd_has_prefix(config->version, "0.1.") && !nd_has_prefix(config->version, "0.2.") &&
               !nd_has_prefix(config->version, "0.3.");
}

bool cri_cni_config_takes_check(const struct cri_cni_config *config) {
        /* 0.4.0 introduced both */
        return cri_cni_config_del_takes_result(config) && !config->disable_check;
}
