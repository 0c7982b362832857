/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kubeconfig.h"

#include <string.h>

#include "base/base64.h"
#include "base/yaml.h"
#include "sys/file.h"

#define POD_DIRECTORY "/var/run/secrets/kubernetes.io/serviceaccount"

void nd_kubeconfig_done(struct nd_kubeconfig *config) {
        if (config->key)
                explicit_bzero(config->key, strlen(config->key));
        if (config->token)
                explicit_bzero(config->token, strlen(config->token));
        free(config->server);
        free(config->tls_server_name);
        free(config->ca);
        free(config->certificate);
        free(config->key);
        free(config->token);
        free(config->token_file);
        free(config->namespace);
        free(config->file);
        free(config->ca_file);
        free(config->certificate_file);
        free(config->key_file);
        *config = (struct nd_kubeconfig) {};
}

/* {"clusters": [{"name": NAME, "cluster": {...}}]}: the inner object. */
static struct nd_error *find_named(yyjson_val *root, const char *list, const char *member, const char *name,
                                   yyjson_val **ret) {
        yyjson_val *items = yyjson_obj_get(root, list), *item;
        yyjson_arr_iter each = yyjson_arr_iter_with(items);

        while ((item = yyjson_arr_iter_next(&each))) {
                if (!yyjson_equals_str(yyjson_obj_get(item, "name"), name))
                        continue;
                *ret = yyjson_obj_get(item, member);
                if (!yyjson_is_obj(*ret))
                        return nd_error_new(ND_INVALID, 0, "%s '%s' is empty", member, name);
                return nullptr;
        }
        return nd_error_new(ND_NOT_FOUND, 0, "no %s '%s' is defined", member, name);
}

/* A string member; nullptr if absent, null or "". */
static struct nd_error *take_text(yyjson_val *object, const char *key, char **ret) {
        yyjson_val *value = yyjson_obj_get(object, key);

        if (!value || yyjson_is_null(value) || (yyjson_is_str(value) && yyjson_get_len(value) == 0))
                return nullptr;
        if (!yyjson_is_str(value) || memchr(yyjson_get_str(value), '\0', yyjson_get_len(value)))
                return nd_error_new(ND_INVALID, 0, "%s is not a string", key);
        nd_strset(ret, yyjson_get_str(value));
        return nullptr;
}

static struct nd_error *take_data(yyjson_val *object, const char *key, char **ret) {
        nd_autofree char *encoded = nullptr;
        char *decoded = nullptr;

        nd_try(take_text(object, key, &encoded));
        if (!encoded)
                return nullptr;
        nd_try(nd_error_wrap(nd_base64_parse(encoded, &decoded), "%s", key));
        free(*ret);
        *ret = decoded;
        return nullptr;
}

static struct nd_error *read_cluster(yyjson_val *cluster, struct nd_kubeconfig *config) {
        nd_autofree char *proxy = nullptr;
        size_t length;

        nd_try(take_text(cluster, "server", &config->server));
        nd_try(take_text(cluster, "tls-server-name", &config->tls_server_name));
        nd_try(take_text(cluster, "certificate-authority", &config->ca_file));
        nd_try(take_data(cluster, "certificate-authority-data", &config->ca));
        nd_try(take_text(cluster, "proxy-url", &proxy));
        config->insecure = yyjson_is_true(yyjson_obj_get(cluster, "insecure-skip-tls-verify"));
        if (proxy)
                return nd_error_new(ND_UNIMPLEMENTED, 0, "proxy-url: going through a proxy is not supported");
        if (!config->server || (!nd_has_prefix(config->server, "https://") && !nd_has_prefix(config->server, "http://")))
                return nd_error_new(ND_INVALID, 0, "server must be an https:// address");
        length = strlen(config->server);
        while (length > 0 && config->server[length - 1] == '/')
                config->server[--length] = '\0';
        for (size_t i = 0; i < length; i++)
                if ((unsigned char) config->server[i] <= ' ' || config->server[i] == 0x7f)
                        return nd_error_new(ND_INVALID, 0, "server must be an https:// address");
        return nullptr;
}

static struct nd_error *read_user(yyjson_val *user, struct nd_kubeconfig *config) {
        static const char *const unsupported[] = {"exec", "auth-provider", "username", "as", "as-groups"};

        for (size_t i = 0; i < nd_count_of(unsupported); i++)
                if (yyjson_obj_get(user, unsupported[i]))
                        return nd_error_new(
                                ND_UNIMPLEMENTED, 0,
                                "'%s' of a user is not supported; use a client certificate or a token, for instance of a "
                                "service account",
                                unsupported[i]);
        nd_try(take_text(user, "client-certificate", &config->certificate_file));
        nd_try(take_data(user, "client-certificate-data", &config->certificate));
        nd_try(take_text(user, "client-key", &config->key_file));
        nd_try(take_data(user, "client-key-data", &config->key));
        nd_try(take_text(user, "token", &config->token));
        nd_try(take_text(user, "tokenFile", &config->token_file));
        if ((config->certificate || config->certificate_file) != (config->key || config->key_file))
                return nd_error_new(ND_INVALID, 0, "a client certificate and its key must both be given");
        return nullptr;
}

struct nd_error *nd_kubeconfig_parse(const char *text, size_t length, const char *context, struct nd_kubeconfig *ret) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autofree char *current = nullptr, *cluster_name = nullptr, *user_name = nullptr;
        yyjson_val *root, *chosen, *cluster, *user;
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_yaml_parse(text, length, ND_KUBECONFIG_BYTES, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "not a kubeconfig");
        nd_try(take_text(root, "current-context", &current));
        if (!context && !current)
                return nd_error_new(ND_INVALID, 0, "no current-context is set; `kubectl config use-context` sets one");
        nd_try(find_named(root, "contexts", "context", context ? context : current, &chosen));
        nd_try(take_text(chosen, "cluster", &cluster_name));
        nd_try(take_text(chosen, "user", &user_name));
        nd_try(take_text(chosen, "namespace", &config.namespace));
        nd_try(find_named(root, "clusters", "cluster", cluster_name ? cluster_name : "", &cluster));
        nd_try(nd_error_wrap(read_cluster(cluster, &config), "cluster '%s'", cluster_name));
        if (user_name) {
                nd_try(find_named(root, "users", "user", user_name, &user));
                nd_try(nd_error_wrap(read_user(user, &config), "user '%s'", user_name));
        }
        *ret = nd_take(config, (struct nd_kubeconfig) {});
        return nullptr;
}

/* Follows symbolic links: users may have them in ~/.kube, and Kubernetes projects a pod's files as
 * links. */
static struct nd_error *read_beside(const char *directory, char **path, size_t ceiling, char **ret) {
        nd_autofree char *joined = nullptr;

        if (!*path)
                return nullptr;
        joined = (*path)[0] == '/' ? nd_strdup(*path) : nd_format("%s/%s", directory, *path);
        nd_strset(path, joined);
        return *ret ? nullptr : nd_file_read_kernel(joined, ceiling, ret);
}

static struct nd_error *read_files(const char *directory, struct nd_kubeconfig *config) {
        nd_try(read_beside(directory, &config->ca_file, ND_KUBECONFIG_PEM, &config->ca));
        nd_try(read_beside(directory, &config->certificate_file, ND_KUBECONFIG_PEM, &config->certificate));
        nd_try(read_beside(directory, &config->key_file, ND_KUBECONFIG_PEM, &config->key));
        return read_beside(directory, &config->token_file, ND_KUBECONFIG_TOKEN, &config->token);
}

struct nd_error *nd_kubeconfig_load(const char *path, const char *context, struct nd_kubeconfig *ret) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autofree char *text = nullptr, *directory = nullptr;
        const char *slash = strrchr(path, '/');

        nd_try(nd_file_read_kernel(path, ND_KUBECONFIG_BYTES, &text));
        nd_try(nd_error_wrap(nd_kubeconfig_parse(text, strlen(text), context, &config), "kubeconfig '%s'", path));
        directory = slash ? nd_strndup(path, (size_t) (slash - path)) : nd_strdup(".");
        nd_try(nd_error_wrap(read_files(directory, &config), "kubeconfig '%s'", path));
        config.file = nd_strdup(path);
        *ret = nd_take(config, (struct nd_kubeconfig) {});
        return nullptr;
}

struct nd_error *nd_kubeconfig_has_context(const char *path, const char *context, bool *ret) {
        nd_autofree char *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_arr_iter each;
        yyjson_val *item;
        bool found = false;

        nd_try(nd_file_read_kernel(path, ND_KUBECONFIG_BYTES, &text));
        nd_try(nd_error_wrap(nd_yaml_parse(text, strlen(text), ND_KUBECONFIG_BYTES, &doc), "kubeconfig '%s'", path));
        each = yyjson_arr_iter_with(yyjson_obj_get(yyjson_doc_get_root(doc), "contexts"));
        while (!found && (item = yyjson_arr_iter_next(&each)))
                found = yyjson_equals_str(yyjson_obj_get(item, "name"), context);
        *ret = found;
        return nullptr;
}

struct nd_error *nd_kubeconfig_of_pod(const char *directory, struct nd_kubeconfig *ret) {
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autofree char *namespace_file = nullptr;

        directory = directory ? directory : POD_DIRECTORY;
        if (!host || !*host || !port || !*port)
                return nd_error_new(ND_NOT_FOUND, 0, "not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set");
        config.server = nd_format(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
        config.token_file = nd_format("%s/token", directory);
        config.ca_file = nd_format("%s/ca.crt", directory);
        nd_try(nd_file_read_kernel(config.token_file, ND_KUBECONFIG_TOKEN, &config.token));
        nd_try(nd_file_read_kernel(config.ca_file, ND_KUBECONFIG_PEM, &config.ca));
        namespace_file = nd_format("%s/namespace", directory);
        nd_ignore(nd_file_read_kernel(namespace_file, 256, &config.namespace)); /* optional */
        *ret = nd_take(config, (struct nd_kubeconfig) {});
        return nullptr;
}

/* HEADER.PAYLOAD.SIGNATURE, each in base64 for URLs, without padding. */
uint64_t nd_kubeconfig_token_expiry(const char *token) {
        const char *payload = strchr(token, '.'), *end = payload ? strchr(payload + 1, '.') : nullptr;
        nd_autofree char *encoded = nullptr, *text = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        yyjson_val *expiry;

        if (!end)
                return 0;
        payload++;
        encoded = nd_format("%.*s%.*s", (int) (end - payload), payload, (int) (-(end - payload) & 3), "===");
        for (char *c = encoded; *c; c++)
                *c = (char) (*c == '-' ? '+' : *c == '_' ? '/' : *c);
        error = nd_base64_parse(encoded, &text);
        if (!error)
                error = nd_json_parse(text, strlen(text), ND_KUBECONFIG_TOKEN, &doc);
        if (error)
                return 0;
        expiry = yyjson_obj_get(yyjson_doc_get_root(doc), "exp");
        return yyjson_is_uint(expiry) ? yyjson_get_uint(expiry) : 0;
}

struct nd_error *nd_kubeconfig_find(const char *path, struct nd_kubeconfig *ret) {
        const char *named = getenv("KUBECONFIG"), *home = getenv("HOME");
        nd_autofree char *usual = nullptr;

        if (path)
                return nd_kubeconfig_load(path, nullptr, ret);
        if (getenv("KUBERNETES_SERVICE_HOST"))
                return nd_kubeconfig_of_pod(nullptr, ret);
        if (named && *named)
                return nd_kubeconfig_load(named, nullptr, ret);
        usual = nd_format("%s/.kube/config", home ? home : "");
        return nd_kubeconfig_load(usual, nullptr, ret);
}
