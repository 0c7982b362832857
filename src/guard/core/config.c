/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/config.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/yaml.h"
#include "sys/file.h"

enum {
        CONFIG_CEILING = 1 << 20,
        NAMES = 256,
};

/* The path of a file in this directory, if there is one. A file that cannot be looked at counts:
 * reading it gives the reason. */
static char *existing(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name);

        return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR) ? nd_take_ptr(path) : nullptr;
}

static const struct {
        const char *path;
        const char *directory;
        const char *address; /* the authorizer answers the API server of its own host only */
        uint32_t port;
} roles[] = {
        [GUARD_ROLE_ADMISSION] = {GUARD_CONFIG_PATH, GUARD_DIRECTORY, "0.0.0.0", 9443},
        [GUARD_ROLE_AUTHORIZER] = {GUARD_AUTHORIZER_CONFIG_PATH, GUARD_AUTHORIZER_DIRECTORY, "127.0.0.1", 9444},
};
static_assert(nd_count_of(roles) == GUARD_ROLES);

const char *guard_config_path(enum guard_role role) {
        return roles[role].path;
}

const char *guard_config_directory(enum guard_role role) {
        return roles[role].directory;
}

/* A unit may pass the files as credentials. These are copies made at its start: renewed files need
 * a restart then. */
void guard_config_init(enum guard_role role, struct guard_config *ret) {
        const char *credentials = getenv("CREDENTIALS_DIRECTORY");
        const char *directory = credentials && *credentials == '/' ? credentials : roles[role].directory;

        *ret = (struct guard_config) {.address = nd_strdup(roles[role].address),
                                      .port = roles[role].port,
                                      .certificate = nd_format("%s/tls.crt", directory),
                                      .key = nd_format("%s/tls.key", directory),
                                      .kubeconfig = existing(directory, "kubeconfig"),
                                      .group = nd_strdup("security.nodens.io"),
                                      .service = nd_strdup("nodens-guard"),
                                      .ids_per_pod = 65536,
                                      .overlap_seconds = 600,
                                      .connections = 1000,
                                      .stale_seconds = 20,
                                      .drain_seconds = role == GUARD_ROLE_ADMISSION ? 5 : 0,
                                      .allocate = role == GUARD_ROLE_ADMISSION,
                                      .label_sync = nd_strdup("off"),
                                      .default_mode = nd_strdup("warn")};
        nd_strings_add(&ret->client_names, GUARD_CLIENT_NAME);
        ret->client_ca = existing(directory, "client-ca.crt");
        guard_standards_init(&ret->standards);
}

void guard_config_done(struct guard_config *config) {
        free(config->address);
        free(config->certificate);
        free(config->key);
        free(config->client_ca);
        nd_strings_done(&config->client_names);
        nd_strings_done(&config->metrics_names);
        free(config->kubeconfig);
        free(config->group);
        free(config->service);
        free(config->namespace);
        free(config->default_mode);
        free(config->label_sync);
        guard_standards_done(&config->standards);
        *config = (struct guard_config) {};
}

struct key {
        const char *name;
        enum {
                KEY_TEXT,
                KEY_PATH,
                KEY_NUMBER,
                KEY_FLAG,
                KEY_MODE,
                KEY_SYNC,
                KEY_NAMES,
                KEY_AUTHORITY,
                KEY_CERTIFICATE,
                KEY_STANDARDS
        } kind;
        size_t offset;
        uint32_t least, most;
};

static const struct key keys[] = {
        {"address", KEY_TEXT, offsetof(struct guard_config, address), 0, 0},
        {"port", KEY_NUMBER, offsetof(struct guard_config, port), 1, 65535},
        {"certificate", KEY_CERTIFICATE, offsetof(struct guard_config, certificate), 0, 0},
        {"key", KEY_PATH, offsetof(struct guard_config, key), 0, 0},
        {"clientCA", KEY_AUTHORITY, offsetof(struct guard_config, client_ca), 0, 0},
        {"clientNames", KEY_NAMES, offsetof(struct guard_config, client_names), 0, 0},
        {"metricsNames", KEY_NAMES, offsetof(struct guard_config, metrics_names), 0, 0},
        {"kubeconfig", KEY_PATH, offsetof(struct guard_config, kubeconfig), 0, 0},
        {"group", KEY_TEXT, offsetof(struct guard_config, group), 0, 0},
        {"service", KEY_TEXT, offsetof(struct guard_config, service), 0, 0},
        {"rotationOverlapSeconds", KEY_NUMBER, offsetof(struct guard_config, overlap_seconds), 30, 86400},
        {"idsPerPod", KEY_NUMBER, offsetof(struct guard_config, ids_per_pod), 65536, 1u << 31},
        {"connections", KEY_NUMBER, offsetof(struct guard_config, connections), 8, 100000},
        {"staleSeconds", KEY_NUMBER, offsetof(struct guard_config, stale_seconds), 4, 600},
        {"drainSeconds", KEY_NUMBER, offsetof(struct guard_config, drain_seconds), 0, 60},
        {"userNamespacesHostNetwork", KEY_FLAG, offsetof(struct guard_config, host_network), 0, 0},
        {"allocateRanges", KEY_FLAG, offsetof(struct guard_config, allocate), 0, 0},
        {"namespace", KEY_TEXT, offsetof(struct guard_config, namespace), 0, 0},
        {"rbacOnly", KEY_FLAG, offsetof(struct guard_config, rbac_only), 0, 0},
        {"defaultMode", KEY_MODE, offsetof(struct guard_config, default_mode), 0, 0},
        {"podSecurityLabelSync", KEY_SYNC, offsetof(struct guard_config, label_sync), 0, 0},
        {"podSecurity", KEY_STANDARDS, offsetof(struct guard_config, standards), 0, 0},
};

/* Values that are not paths. */
static bool is_word(const struct key *key, const char *text) {
        if (key->kind == KEY_AUTHORITY && nd_streq(text, GUARD_NO_AUTHORITY))
                return true;
        return (key->kind == KEY_AUTHORITY || key->kind == KEY_CERTIFICATE) && nd_streq(text, GUARD_FROM_CLUSTER);
}

static struct nd_error *take_text(const struct key *key, yyjson_val *value, char **field) {
        const char *text = yyjson_get_str(value);

        if (!text || !*text || memchr(text, '\0', yyjson_get_len(value)))
                return nd_error_new(ND_INVALID, 0, "%s must be a string", key->name);
        if (is_word(key, text)) {
                nd_strset(field, text);
                return nullptr;
        }
        if ((key->kind == KEY_PATH || key->kind == KEY_AUTHORITY || key->kind == KEY_CERTIFICATE) && *text != '/')
                return nd_error_new(ND_INVALID, 0, "%s must be an absolute path", key->name);
        if (key->kind == KEY_MODE && !nd_streq(text, "off") && !nd_streq(text, "warn") && !nd_streq(text, "enforce"))
                return nd_error_new(ND_INVALID, 0, "%s must be off, warn or enforce", key->name);
        if (key->kind == KEY_SYNC && !nd_streq(text, "off") && !nd_streq(text, "dry-run") && !nd_streq(text, "on"))
                return nd_error_new(ND_INVALID, 0, "%s must be off, dry-run or on", key->name);
        nd_strset(field, text);
        return nullptr;
}

static struct nd_error *take_names(const struct key *key, yyjson_val *value, struct nd_strings *names) {
        yyjson_arr_iter items = yyjson_arr_iter_with(value);
        yyjson_val *item;

        if (!yyjson_is_arr(value) || yyjson_arr_size(value) > NAMES)
                return nd_error_new(ND_INVALID, 0, "%s must be a list of at most %d names", key->name, NAMES);
        nd_strings_done(names);
        while ((item = yyjson_arr_iter_next(&items))) {
                const char *name = yyjson_get_str(item);

                if (!name || !*name || memchr(name, '\0', yyjson_get_len(item)))
                        return nd_error_new(ND_INVALID, 0, "%s must be a list of names", key->name);
                nd_strings_add(names, name);
        }
        return nullptr;
}

static struct nd_error *take_key(const char *name, yyjson_val *value, void *userdata) {
        struct guard_config *config = userdata;

        for (size_t i = 0; i < nd_count_of(keys); i++) {
                void *field = (char *) config + keys[i].offset;

                if (!nd_streq(keys[i].name, name))
                        continue;
                if (keys[i].kind == KEY_FLAG) {
                        if (!yyjson_is_bool(value))
                                return nd_error_new(ND_INVALID, 0, "%s must be true or false", name);
                        *(bool *) field = yyjson_get_bool(value);
                        return nullptr;
                }
                if (keys[i].kind == KEY_STANDARDS)
                        return guard_standards_read(field, value);
                if (keys[i].kind == KEY_NAMES)
                        return take_names(&keys[i], value, field);
                if (keys[i].kind != KEY_NUMBER)
                        return take_text(&keys[i], value, field);
                if (!yyjson_is_uint(value) || yyjson_get_uint(value) < keys[i].least || yyjson_get_uint(value) > keys[i].most)
                        return nd_error_new(ND_INVALID, 0, "%s must be a number from %u to %u", name, keys[i].least,
                                            keys[i].most);
                *(uint32_t *) field = (uint32_t) yyjson_get_uint(value);
                return nullptr;
        }
        return nd_error_new(ND_INVALID, 0, "unknown key '%s'; see nodens-guard(8) for the list of keys", name);
}

bool guard_config_authenticates(const struct guard_config *config) {
        return config->client_ca && !nd_streq(config->client_ca, GUARD_NO_AUTHORITY);
}

bool guard_config_computes_labels(const struct guard_config *config) {
        return !nd_streq(config->label_sync, "off");
}

bool guard_config_writes_labels(const struct guard_config *config) {
        return nd_streq(config->label_sync, "on");
}

bool guard_config_makes_certificate(const struct guard_config *config) {
        return nd_streq(config->certificate, GUARD_FROM_CLUSTER);
}

bool guard_config_reads_client_ca(const struct guard_config *config) {
        return config->client_ca && nd_streq(config->client_ca, GUARD_FROM_CLUSTER);
}

struct nd_error *guard_config_parse(const char *text, size_t length, struct guard_config *config) {
        nd_try(nd_yaml_members(text, length, CONFIG_CEILING, take_key, config));
        if (guard_config_authenticates(config) && config->client_names.count == 0)
                return nd_error_new(ND_INVALID, 0, "clientNames is empty: no client could request a review");
        return nullptr;
}

struct nd_error *guard_config_read(enum guard_role role, const char *path, struct guard_config *ret) {
        nd_cleanup(guard_config_done) struct guard_config config = {};
        const char *file = path ? path : roles[role].path;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *text = nullptr;
        size_t length = 0;

        guard_config_init(role, &config);
        /* in a pod the file is a link into a directory that the kubelet replaces */
        error = nd_file_read_linked(AT_FDCWD, file, CONFIG_CEILING, &text, &length);
        if (error && (path || nd_error_code(error) != ND_NOT_FOUND))
                return nd_take_ptr(error);
        if (!error)
                nd_try(nd_error_wrap(guard_config_parse(text, length, &config), "%s", file));
        *ret = nd_take(config, (struct guard_config) {});
        return nullptr;
}
