/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/runtime-settings.h"

#include <fcntl.h>

#include "base/text.h"
#include "base/yaml.h"
#include "cli/core/client.h"
#include "sys/file.h"
#include "sys/own-userns.h"

enum {
        CONFIG_CEILING = 1 << 20,
        VALUE_CEILING = 1 << 16,
};

static const struct {
        const char *key;
        size_t offset;
        const char *standard;
} keys[] = {
        {"socket", offsetof(struct cli_runtime_settings, socket), CLIENT_SOCKET},
        {"cniConfig", offsetof(struct cli_runtime_settings, cni_config), "/etc/cni/net.d"},
        {"cniPlugins", offsetof(struct cli_runtime_settings, cni_plugins), "/opt/cni/bin:/usr/lib/cni"},
        {"seccompProfile", offsetof(struct cli_runtime_settings, seccomp_profile), "/usr/share/containers/seccomp.json"},
        {"certificates", offsetof(struct cli_runtime_settings, certificates), "/etc/nodens/certs.d"},
        {"cgroupDriver", offsetof(struct cli_runtime_settings, cgroup_driver), "systemd"},
        {"bridgeHelper", offsetof(struct cli_runtime_settings, bridge_helper), ND_LIBEXEC "/nodens-bridge"},
        {"volumes", offsetof(struct cli_runtime_settings, volumes), "bridge=off"},
};

static char **field_of(struct cli_runtime_settings *settings, size_t number) {
        void *field = (char *) settings + keys[number].offset;

        return field;
}

void cli_runtime_settings_done(struct cli_runtime_settings *settings) {
        for (size_t i = 0; i < nd_count_of(keys); i++)
                free(nd_take_ptr(*field_of(settings, i)));
}

/* As nodens-cri itself decides: a rootless node has no systemd of its own. */
static bool is_rootless_node(void) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own = {};
        nd_autoerror struct nd_error *error = nd_own_userns_read(&own);

        return !error && !own.initial;
}

void cli_runtime_settings_init(struct cli_runtime_settings *ret) {
        *ret = (struct cli_runtime_settings) {};
        for (size_t i = 0; i < nd_count_of(keys); i++)
                *field_of(ret, i) = nd_strdup(keys[i].standard);
        if (is_rootless_node())
                nd_strset(&ret->cgroup_driver, "cgroupfs");
}

static void set(struct cli_runtime_settings *settings, const char *key, const char *value) {
        for (size_t i = 0; i < nd_count_of(keys); i++)
                if (nd_streq(keys[i].key, key))
                        nd_strset(field_of(settings, i), value);
}

/* In the form in which the daemon reports it. */
static void take_volumes(yyjson_val *value, struct cli_runtime_settings *settings) {
        yyjson_arr_iter rules = yyjson_arr_iter_with(yyjson_obj_get(value, "rules"));
        nd_autotext struct nd_text joined = ND_TEXT(VALUE_CEILING);
        yyjson_val *rule;

        nd_text_addf(&joined, "bridge=%s", yyjson_get_str(yyjson_obj_get(value, "bridge")) ?: "off");
        while ((rule = yyjson_arr_iter_next(&rules))) {
                const char *owner = yyjson_get_str(yyjson_obj_get(rule, "forceOwner")),
                           *as = yyjson_get_str(yyjson_obj_get(rule, "as"));

                nd_text_addf(&joined, ",%s=%s", yyjson_get_str(yyjson_obj_get(rule, "filesystem")) ?: "",
                             owner ?: as ?: "root");
        }
        if (!joined.overflow)
                set(settings, "volumes", nd_text_get(&joined));
}

static struct nd_error *take_member(const char *key, yyjson_val *value, void *userdata) {
        yyjson_arr_iter items = yyjson_arr_iter_with(value);
        nd_autotext struct nd_text joined = ND_TEXT(VALUE_CEILING);
        yyjson_val *item;

        if (nd_streq(key, "volumes")) {
                take_volumes(value, userdata);
                return nullptr;
        }
        if (yyjson_is_str(value))
                set(userdata, key, yyjson_get_str(value));
        while ((item = yyjson_arr_iter_next(&items)))
                if (yyjson_is_str(item))
                        nd_text_addf(&joined, "%s%s", joined.length > 0 ? ":" : "", yyjson_get_str(item));
        if (joined.length > 0 && !joined.overflow)
                set(userdata, key, nd_text_get(&joined));
        return nullptr;
}

struct nd_error *cli_runtime_settings_parse(const char *text, size_t length, struct cli_runtime_settings *settings) {
        return nd_yaml_members(text, length, CONFIG_CEILING, take_member, settings);
}

struct nd_error *cli_runtime_settings_read(const char *path, struct cli_runtime_settings *ret) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *text = nullptr;
        size_t length = 0;

        cli_runtime_settings_init(ret);
        error = nd_file_read(AT_FDCWD, path, CONFIG_CEILING, &text, &length);
        if (nd_error_code(error) == ND_NOT_FOUND)
                return nullptr;
        if (error)
                return nd_take_ptr(error);
        return nd_error_wrap(cli_runtime_settings_parse(text, length, ret), "%s", path);
}

void cli_runtime_settings_take(const Nodens__V1__InfoAnswer *info, struct cli_runtime_settings *settings) {
        for (size_t i = 0; i < info->n_settings; i++)
                set(settings, info->settings[i]->name, info->settings[i]->value);
}
