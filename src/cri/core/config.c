/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/config.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/yaml.h"
#include "sys/file.h"
#include "sys/own-userns.h"

#ifndef ND_LIBEXEC
#define ND_LIBEXEC "/usr/libexec/nodens"
#endif

enum {
        CONFIG_CEILING = 1 << 20,
        PINNED_MOST = 100,
        PATHS_MOST = 16,
};

static void runtime_handler_done(struct cri_runtime_handler *handler) {
        free(handler->name);
        free(handler->program);
}

static void bridge_rule_done(struct cri_bridge_rule *rule) {
        free(rule->filesystem);
        free(rule->force_owner);
}

void cri_config_done(struct cri_config *config) {
        free(config->socket);
        free(config->images);
        free(config->certificates);
        free(config->fetch_helper);
        free(config->unpack_helper);
        free(config->bridge_helper);
        nd_vector_each (name, &config->pinned) {
                free(*name);
        }
        nd_vector_done(&config->pinned);
        free(config->state);
        free(config->run);
        free(config->netns);
        free(config->crun);
        free(config->monitor);
        free(config->init);
        free(config->cgroup_prefix);
        free(config->runtime_name);
        free(config->cni_config);
        free(config->cni_plugins);
        free(config->seccomp_profile);
        free(config->apparmor_profiles);
        nd_vector_each (handler, &config->handlers)
                runtime_handler_done(handler);
        nd_vector_done(&config->handlers);
        nd_vector_each (rule, &config->bridge_rules)
                bridge_rule_done(rule);
        nd_vector_done(&config->bridge_rules);
        free(config->cdi);
        free(config->verifier);
        free(config->pull_broker);
        free(config->metrics);
        *config = (struct cri_config) {};
}

void cri_config_init(struct cri_config *ret) {
        *ret = (struct cri_config) {
                .socket = nd_strdup("/run/nodens/cri.sock"),
                .images = nd_strdup("/var/lib/nodens/images"),
                .certificates = nd_strdup("/etc/nodens/certs.d"),
                .fetch_helper = nd_strdup(ND_LIBEXEC "/nodens-fetch"),
                .unpack_helper = nd_strdup(ND_LIBEXEC "/nodens-unpack"),
                .bridge_helper = nd_strdup(ND_LIBEXEC "/nodens-bridge"),
                .pulls = 8,
                .downloads = 3,
                .stalled_s = 60,
                .state = nd_strdup("/var/lib/nodens"),
                .run = nd_strdup("/run/nodens"),
                .netns = nd_strdup("/run/netns"),
                .crun = nd_strdup("crun"),
                .monitor = nd_strdup(ND_LIBEXEC "/nodens-mon"),
                .init = nd_strdup("catatonit"),
                .systemd_cgroups = true,
                .cgroup_prefix = nd_strdup("cri-containerd"),
                .runtime_name = nd_strdup("nodens"),
                .cni_config = nd_strdup("/etc/cni/net.d"),
                .cni_plugins = nd_strdup("/opt/cni/bin:/usr/lib/cni"),
                .seccomp_profile = nd_strdup("/usr/share/containers/seccomp.json"),
                .apparmor_profiles = nd_strdup("/etc/apparmor.d/nodens-container"),
                .cdi = nd_strdup("/etc/cdi:/var/run/cdi"),
                .verifier = nd_strdup(""),
                .pull_broker = nd_strdup(""),
                .metrics = nd_strdup("off"),
        };
}

struct key {
        const char *name;
        enum {
                KEY_PATH,
                KEY_OPTIONAL_PATH, /* or "off", which is stored as "" */
                KEY_PROGRAM,
                KEY_PATHS,
                KEY_NUMBER,
                KEY_NAMES,
                KEY_DRIVER,
                KEY_LABEL,
                KEY_ENDPOINT,
                KEY_HANDLERS,
                KEY_VOLUMES,
                KEY_BOOL
        } kind;
        size_t offset;
        uint32_t least, most;
};

static const struct key keys[] = {
        {"socket", KEY_PATH, offsetof(struct cri_config, socket), 0, 0},
        {"images", KEY_PATH, offsetof(struct cri_config, images), 0, 0},
        {"certificates", KEY_PATH, offsetof(struct cri_config, certificates), 0, 0},
        {"fetchHelper", KEY_PATH, offsetof(struct cri_config, fetch_helper), 0, 0},
        {"unpackHelper", KEY_PATH, offsetof(struct cri_config, unpack_helper), 0, 0},
        {"bridgeHelper", KEY_PATH, offsetof(struct cri_config, bridge_helper), 0, 0},
        {"parallelPulls", KEY_NUMBER, offsetof(struct cri_config, pulls), 1, 64},
        {"parallelDownloads", KEY_NUMBER, offsetof(struct cri_config, downloads), 1, 32},
        {"noProgressSeconds", KEY_NUMBER, offsetof(struct cri_config, stalled_s), 1, 3600},
        {"pinnedImages", KEY_NAMES, offsetof(struct cri_config, pinned), 0, 0},
        {"state", KEY_PATH, offsetof(struct cri_config, state), 0, 0},
        {"run", KEY_PATH, offsetof(struct cri_config, run), 0, 0},
        {"networkNamespaces", KEY_PATH, offsetof(struct cri_config, netns), 0, 0},
        {"crun", KEY_PROGRAM, offsetof(struct cri_config, crun), 0, 0},
        {"monitor", KEY_PROGRAM, offsetof(struct cri_config, monitor), 0, 0},
        {"init", KEY_PROGRAM, offsetof(struct cri_config, init), 0, 0},
        {"cgroupDriver", KEY_DRIVER, offsetof(struct cri_config, systemd_cgroups), 0, 0},
        {"cgroupPrefix", KEY_LABEL, offsetof(struct cri_config, cgroup_prefix), 0, 0},
        {"runtimeName", KEY_LABEL, offsetof(struct cri_config, runtime_name), 0, 0},
        {"cniConfig", KEY_PATH, offsetof(struct cri_config, cni_config), 0, 0},
        {"cniPlugins", KEY_PATHS, offsetof(struct cri_config, cni_plugins), 0, 0},
        {"seccompProfile", KEY_PATH, offsetof(struct cri_config, seccomp_profile), 0, 0},
        {"apparmorProfiles", KEY_PATH, offsetof(struct cri_config, apparmor_profiles), 0, 0},
        {"runtimeHandlers", KEY_HANDLERS, offsetof(struct cri_config, handlers), 0, 0},
        {"cdi", KEY_PATHS, offsetof(struct cri_config, cdi), 0, 0},
        {"deviceOwnershipFromSecurityContext", KEY_BOOL, offsetof(struct cri_config, device_ownership), 0, 0},
        {"refuseUnmappedOwners", KEY_BOOL, offsetof(struct cri_config, refuse_unmapped_owners), 0, 0},
        {"volumes", KEY_VOLUMES, offsetof(struct cri_config, bridge_volumes), 0, 0},
        {"imageVerifier", KEY_OPTIONAL_PATH, offsetof(struct cri_config, verifier), 0, 0},
        {"unlockedReadOnlyVolumes", KEY_BOOL, offsetof(struct cri_config, unlocked_volumes), 0, 0},
        {"pullBroker", KEY_OPTIONAL_PATH, offsetof(struct cri_config, pull_broker), 0, 0},
        {"withoutCgroups", KEY_BOOL, offsetof(struct cri_config, without_cgroups), 0, 0},
        {"metrics", KEY_ENDPOINT, offsetof(struct cri_config, metrics), 0, 0},
};

static struct nd_error *take_path(const struct key *key, yyjson_val *value, void *field) {
        char **target = field;

        if (!yyjson_is_str(value) || yyjson_get_str(value)[0] != '/')
                return nd_error_new(ND_INVALID, 0, "%s must be an absolute path", key->name);
        free(*target);
        *target = nd_strdup(yyjson_get_str(value));
        return nullptr;
}

/* off may also be written as false. */
static struct nd_error *take_optional_path(const struct key *key, yyjson_val *value, void *field) {
        const char *text = yyjson_is_false(value) ? "off" : yyjson_get_str(value);

        if (!text || (text[0] != '/' && !nd_streq(text, "off")))
                return nd_error_new(ND_INVALID, 0, "%s must be an absolute path, or off", key->name);
        nd_strset(field, nd_streq(text, "off") ? "" : text);
        return nullptr;
}

static struct nd_error *take_program(const struct key *key, yyjson_val *value, void *field) {
        char **target = field;

        if (!yyjson_is_str(value) || !yyjson_get_len(value) ||
            (strchr(yyjson_get_str(value), '/') && yyjson_get_str(value)[0] != '/'))
                return nd_error_new(ND_INVALID, 0, "%s must be a program's name or absolute path", key->name);
        free(*target);
        *target = nd_strdup(yyjson_get_str(value));
        return nullptr;
}

static struct nd_error *take_paths(const struct key *key, yyjson_val *value, void *field) {
        yyjson_arr_iter paths = yyjson_arr_iter_with(value);
        nd_autotext struct nd_text joined = ND_TEXT(1 << 16);
        char **target = field;
        yyjson_val *path;

        if (!yyjson_is_arr(value) || yyjson_arr_size(value) == 0 || yyjson_arr_size(value) > PATHS_MOST)
                return nd_error_new(ND_INVALID, 0, "%s must be a list of 1 to %d directories", key->name, PATHS_MOST);
        while ((path = yyjson_arr_iter_next(&paths))) {
                if (!yyjson_is_str(path) || yyjson_get_str(path)[0] != '/' || strchr(yyjson_get_str(path), ':'))
                        return nd_error_new(ND_INVALID, 0, "%s must be a list of absolute paths without colons", key->name);
                nd_text_addf(&joined, "%s%s", joined.length > 0 ? ":" : "", yyjson_get_str(path));
        }
        if (joined.overflow)
                return nd_error_new(ND_INVALID, 0, "%s is too long", key->name);
        free(*target);
        *target = nd_text_steal(&joined);
        return nullptr;
}

static struct nd_error *take_driver(const struct key *key, yyjson_val *value, void *field) {
        const char *driver = yyjson_get_str(value);

        if (!driver || (!nd_streq(driver, "systemd") && !nd_streq(driver, "cgroupfs")))
                return nd_error_new(ND_INVALID, 0, "%s must be systemd or cgroupfs, the same as the kubelet's", key->name);
        *(bool *) field = nd_streq(driver, "systemd");
        return nullptr;
}

/* YAML reads a bare off as false. */
static struct nd_error *take_endpoint(const struct key *key, yyjson_val *value, void *field) {
        const char *text = yyjson_is_false(value) ? "off" : yyjson_get_str(value);
        uint64_t port = 0;

        if (text && nd_has_prefix(text, "127.0.0.1:") &&
            (nd_text_parse_u64(text + strlen("127.0.0.1:"), UINT16_MAX, &port) < 0 || port == 0))
                text = nullptr;
        if (!text || (text[0] != '/' && !port && !nd_streq(text, "off")))
                return nd_error_new(ND_INVALID, 0, "%s must be off, the absolute path of a socket, or 127.0.0.1:PORT",
                                    key->name);
        nd_strset(field, text);
        return nullptr;
}

static struct nd_error *take_number(const struct key *key, yyjson_val *value, void *field) {
        if (!yyjson_is_uint(value) || yyjson_get_uint(value) < key->least || yyjson_get_uint(value) > key->most)
                return nd_error_new(ND_INVALID, 0, "%s must be a number from %u to %u", key->name, key->least, key->most);
        *(uint32_t *) field = (uint32_t) yyjson_get_uint(value);
        return nullptr;
}

static struct nd_error *take_bool(const struct key *key, yyjson_val *value, void *field) {
        if (!yyjson_is_bool(value))
                return nd_error_new(ND_INVALID, 0, "%s must be true or false", key->name);
        *(bool *) field = yyjson_get_bool(value);
        return nullptr;
}

static struct nd_error *take_names(const struct key *key, yyjson_val *value, struct cri_config *config) {
        yyjson_arr_iter names = yyjson_arr_iter_with(value);
        yyjson_val *name;

        if (!yyjson_is_arr(value) || yyjson_arr_size(value) > PINNED_MOST)
                return nd_error_new(ND_INVALID, 0, "%s must be a list of at most %d names", key->name, PINNED_MOST);
        while ((name = yyjson_arr_iter_next(&names))) {
                if (!yyjson_is_str(name))
                        return nd_error_new(ND_INVALID, 0, "%s must be a list of names", key->name);
                nd_vector_push(&config->pinned, nd_strdup(yyjson_get_str(name)));
        }
        return nullptr;
}

const char *cri_config_engine_name(enum cri_oci_runtime_kind kind) {
        return kind == OCI_RUNTIME_RUNC ? "runc" : "crun";
}

bool cri_config_handler(const struct cri_config *config, const char *name, struct cri_runtime_handler *ret) {
        if (nd_streq(name, "") || nd_streq(name, "crun")) {
                *ret = (struct cri_runtime_handler) {
                        .name = (char *) "crun", .kind = OCI_RUNTIME_CRUN, .program = config->crun};
                return true;
        }
        nd_vector_each (handler, &config->handlers) {
                if (nd_streq(handler->name, name)) {
                        *ret = *handler;
                        return true;
                }
        }
        return false;
}

/* A RuntimeClass handler is a DNS label. Directories and units are named after it. */
static bool is_label(const char *name) {
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

        return length > 0 && length < 64 && name[length] == '\0' && name[0] != '-' && name[length - 1] != '-';
}

static struct nd_error *take_label(const struct key *key, yyjson_val *value, void *field) {
        const char *text = yyjson_get_str(value);

        if (!text || !is_label(text))
                return nd_error_new(ND_INVALID, 0, "%s must be a name of small letters, digits and dashes", key->name);
        nd_strset(field, text);
        return nullptr;
}

static struct nd_error *take_handler_member(const char *key, yyjson_val *value, struct cri_runtime_handler *handler) {
        const char *text = yyjson_get_str(value);

        if (nd_streq(key, "name") && text && is_label(text)) {
                nd_strset(&handler->name, text);
        } else if (nd_streq(key, "program") && text && text[0] == '/') {
                nd_strset(&handler->program, text);
        } else if (nd_streq(key, "engine") && text && (nd_streq(text, "crun") || nd_streq(text, "runc"))) {
                handler->kind = nd_streq(text, "runc") ? OCI_RUNTIME_RUNC : OCI_RUNTIME_CRUN;
        } else if (nd_streq(key, "writableCgroups") && yyjson_is_bool(value)) {
                handler->writable_cgroups = yyjson_get_bool(value);
        } else {
                return nd_error_new(
                        ND_INVALID, 0,
                        "runtimeHandlers: invalid member '%s': a handler has a name (small letters, digits, dashes), an engine "
                        "(crun or runc), a program (an absolute path) and writableCgroups (true or false)",
                        key);
        }
        return nullptr;
}

static struct nd_error *take_handler(yyjson_val *value, struct cri_config *config) {
        nd_cleanup(runtime_handler_done) struct cri_runtime_handler handler = {};
        yyjson_obj_iter members = yyjson_obj_iter_with(value);
        struct cri_runtime_handler known;
        yyjson_val *key;

        while ((key = yyjson_obj_iter_next(&members)))
                nd_try(take_handler_member(yyjson_get_str(key) ?: "", yyjson_obj_iter_get_val(key), &handler));
        if (!handler.name)
                return nd_error_new(ND_INVALID, 0, "runtimeHandlers: a handler has no name");
        if (handler.writable_cgroups && handler.kind != OCI_RUNTIME_CRUN)
                return nd_error_new(
                        ND_INVALID, 0,
                        "runtimeHandlers: handler '%s': writableCgroups needs the engine crun: runc starts containers in "
                        "the root of their cgroup namespace, where controllers cannot be enabled",
                        handler.name);
        if (cri_config_handler(config, handler.name, &known))
                return nd_error_new(ND_INVALID, 0, "runtimeHandlers: duplicate handler '%s'", handler.name);
        if (!handler.program)
                handler.program = nd_strdup(cri_config_engine_name(handler.kind));
        nd_vector_push(&config->handlers, nd_take(handler, (struct cri_runtime_handler) {}));
        return nullptr;
}

static struct nd_error *take_handlers(const struct key *key, yyjson_val *value, struct cri_config *config) {
        yyjson_arr_iter list = yyjson_arr_iter_with(value);
        yyjson_val *handler;

        if (!yyjson_is_arr(value) || yyjson_arr_size(value) > HANDLERS_MOST)
                return nd_error_new(ND_INVALID, 0, "%s must be a list of at most %d handlers", key->name, HANDLERS_MOST);
        while ((handler = yyjson_arr_iter_next(&list)))
                nd_try(take_handler(handler, config));
        return nullptr;
}

/* ---- volumes ---- */

static const char *const identities[] = {"root", "caller", "owner"};

static struct nd_error *take_rule_member(const char *key, yyjson_val *value, struct cri_bridge_rule *rule) {
        const char *text = yyjson_get_str(value) ?: "";
        uint32_t uid, gid;

        if (nd_streq(key, "filesystem") && *text && strlen(text) < NAME_MAX) {
                nd_strset(&rule->filesystem, text);
                return nullptr;
        }
        if (nd_streq(key, "forceOwner") && nd_text_parse_u32_pair(text, &uid, &gid) == 0) {
                nd_strset(&rule->force_owner, text);
                return nullptr;
        }
        for (size_t i = 0; nd_streq(key, "as") && i < nd_count_of(identities); i++)
                if (nd_streq(text, identities[i])) {
                        rule->as = identities[i];
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0,
                            "volumes: invalid member '%s' of a rule: it has a filesystem, as (root, caller or owner) and "
                            "forceOwner (UID:GID)",
                            key);
}

static struct nd_error *take_rule(yyjson_val *value, struct cri_config *config) {
        nd_cleanup(bridge_rule_done) struct cri_bridge_rule rule = {};
        yyjson_obj_iter members = yyjson_obj_iter_with(value);
        yyjson_val *key;

        while ((key = yyjson_obj_iter_next(&members)))
                nd_try(take_rule_member(yyjson_get_str(key) ?: "", yyjson_obj_iter_get_val(key), &rule));
        if (!rule.filesystem)
                return nd_error_new(ND_INVALID, 0, "volumes: a rule has no filesystem");
        nd_vector_push(&config->bridge_rules, nd_take(rule, (struct cri_bridge_rule) {}));
        return nullptr;
}

static struct nd_error *take_rules(yyjson_val *value, struct cri_config *config) {
        yyjson_arr_iter list = yyjson_arr_iter_with(value);
        yyjson_val *rule;

        if (!yyjson_is_arr(value) || yyjson_arr_size(value) > BRIDGE_RULES_MOST)
                return nd_error_new(ND_INVALID, 0, "volumes: rules must be a list of at most %d", (int) BRIDGE_RULES_MOST);
        while ((rule = yyjson_arr_iter_next(&list)))
                nd_try(take_rule(rule, config));
        return nullptr;
}

static struct nd_error *take_volumes(yyjson_val *value, struct cri_config *config) {
        yyjson_obj_iter members = yyjson_obj_iter_with(value);
        yyjson_val *member;

        if (!yyjson_is_obj(value))
                return nd_error_new(ND_INVALID, 0, "volumes must have the members bridge and rules");
        while ((member = yyjson_obj_iter_next(&members))) {
                const char *key = yyjson_get_str(member) ?: "";
                yyjson_val *given = yyjson_obj_iter_get_val(member);
                /* off may also be written as false */
                const char *text = yyjson_is_false(given) ? "off" : yyjson_get_str(given) ?: "";

                if (nd_streq(key, "rules"))
                        nd_try(take_rules(given, config));
                else if (nd_streq(key, "bridge") && (nd_streq(text, "auto") || nd_streq(text, "off")))
                        config->bridge_volumes = nd_streq(text, "auto");
                else
                        return nd_error_new(ND_INVALID, 0,
                                            "volumes: invalid member '%s': bridge is auto or off, rules is a list", key);
        }
        return nullptr;
}

static struct nd_error *take_key(const char *name, yyjson_val *value, void *userdata) {
        struct cri_config *config = userdata;

        for (size_t i = 0; i < nd_count_of(keys); i++) {
                void *field = (char *) config + keys[i].offset;

                if (!nd_streq(keys[i].name, name))
                        continue;
                switch (keys[i].kind) {
                case KEY_PATH:
                        return take_path(&keys[i], value, field);
                case KEY_OPTIONAL_PATH:
                        return take_optional_path(&keys[i], value, field);
                case KEY_PROGRAM:
                        return take_program(&keys[i], value, field);
                case KEY_PATHS:
                        return take_paths(&keys[i], value, field);
                case KEY_DRIVER:
                        return take_driver(&keys[i], value, field);
                case KEY_LABEL:
                        return take_label(&keys[i], value, field);
                case KEY_ENDPOINT:
                        return take_endpoint(&keys[i], value, field);
                case KEY_HANDLERS:
                        return take_handlers(&keys[i], value, config);
                case KEY_VOLUMES:
                        return take_volumes(value, config);
                case KEY_NUMBER:
                        return take_number(&keys[i], value, field);
                case KEY_BOOL:
                        return take_bool(&keys[i], value, field);
                case KEY_NAMES:
                        return take_names(&keys[i], value, config);
                }
        }
        return nd_error_new(ND_INVALID, 0, "unknown key '%s'; see nodens-cri(8) for the keys", name);
}

const char *cri_config_key(size_t number) {
        return number < nd_count_of(keys) ? keys[number].name : nullptr;
}

/* ---- settings in use ---- */

static void add_item(struct nd_text *text, const char *item) {
        nd_text_addf(text, "%s%s", text->length > 0 ? "," : "", item);
}

static void add_handlers(const struct cri_config *config, struct nd_text *text) {
        nd_vector_each (handler, &config->handlers) {
                nd_autofree char *item = nd_format("%s=%s", handler->name, handler->program);

                add_item(text, item);
        }
}

static void add_volumes(const struct cri_config *config, struct nd_text *text) {
        add_item(text, config->bridge_volumes ? "bridge=auto" : "bridge=off");
        nd_vector_each (rule, &config->bridge_rules) {
                nd_autofree char *item = nd_format("%s=%s", rule->filesystem, rule->force_owner ?: rule->as ?: "root");

                add_item(text, item);
        }
}

/* The value of a key as text. */
static void add_value(const struct key *key, const struct cri_config *config, struct nd_text *text) {
        const void *field = (const char *) config + key->offset;

        switch (key->kind) {
        case KEY_NUMBER:
                nd_text_addf(text, "%u", *(const uint32_t *) field);
                return;
        case KEY_BOOL:
                nd_text_add(text, *(const bool *) field ? "true" : "false");
                return;
        case KEY_DRIVER:
                nd_text_add(text, *(const bool *) field ? "systemd" : "cgroupfs");
                return;
        case KEY_NAMES:
                nd_vector_each (name, &config->pinned)
                        add_item(text, *name);
                return;
        case KEY_HANDLERS:
                add_handlers(config, text);
                return;
        case KEY_VOLUMES:
                add_volumes(config, text);
                return;
        case KEY_OPTIONAL_PATH:
                nd_text_add(text, **(char *const *) field ? *(char *const *) field : "off");
                return;
        case KEY_PATH:
        case KEY_PROGRAM:
        case KEY_PATHS:
        case KEY_LABEL:
        case KEY_ENDPOINT:
                nd_text_add(text, *(char *const *) field);
                return;
        }
}

void cri_config_describe(const struct cri_config *config, void (*each)(const char *name, const char *value, void *userdata),
                         void *userdata) {
        for (size_t i = 0; i < nd_count_of(keys); i++) {
                nd_autotext struct nd_text text = ND_TEXT(CONFIG_CEILING);

                add_value(&keys[i], config, &text);
                each(keys[i].name, nd_text_get(&text), userdata);
        }
}

/* ---- file ---- */

struct nd_error *cri_config_parse(const char *text, size_t length, struct cri_config *config) {
        return nd_yaml_members(text, length, CONFIG_CEILING, take_key, config);
}

/* A rootless node has no systemd of its own, and the host's cannot manage its cgroups. */
static bool may_have_systemd(void) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own = {};
        nd_autoerror struct nd_error *error = nd_own_userns_read(&own);

        return error || own.initial;
}

struct nd_error *cri_config_read(const char *path, struct cri_config *ret) {
        nd_cleanup(cri_config_done) struct cri_config config = {};
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *text = nullptr;
        size_t length = 0;

        cri_config_init(&config);
        config.systemd_cgroups = may_have_systemd();
        error = nd_file_read(AT_FDCWD, path ?: CRI_CONFIG_PATH, CONFIG_CEILING, &text, &length);
        if (error && (path || nd_error_code(error) != ND_NOT_FOUND))
                return nd_take_ptr(error);
        if (!error)
                nd_try(nd_error_wrap(cri_config_parse(text, length, &config), "%s", path ?: CRI_CONFIG_PATH));
        *ret = nd_take(config, (struct cri_config) {});
        return nullptr;
}
