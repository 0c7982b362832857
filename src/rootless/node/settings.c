/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/settings.h"

#include <string.h>

#include "rootless/core/node.h"

enum { SETTINGS_BYTES = 64 * 1024 };

/* Settings that are text, each with the variable that gives it if the option is not used. */
static const struct text_setting {
        const char *variable;
        size_t option; /* in struct rootless_settings */
        size_t field;  /* in struct rootless_config */
} texts[] = {
#define TEXT(variable, name) {variable, offsetof(struct rootless_settings, name), offsetof(struct rootless_config, name)}
        TEXT("NODENS_BIND", bind),         TEXT("NODENS_JOIN", join),
        TEXT("NODENS_RUNTIME", runtime),   TEXT("NODENS_NODE_NAME", node_name),
        TEXT("NODENS_NODE_IP", node_ip),   TEXT("NODENS_LABELS", labels),
        TEXT("NODENS_POD_CIDR", pod_cidr), TEXT("NODENS_CLUSTER_DNS", cluster_dns),
        TEXT("NODENS_PROGRAMS", programs), TEXT("NODENS_PEERS", peers),
        TEXT("NODENS_DEVICES", devices),   TEXT("NODENS_CDI", cdi),
        TEXT("NODENS_CNI", cni),           TEXT("NODENS_REGISTRY_PORTS", registry_ports),
        TEXT("NODENS_API_PORT", api_port),
#undef TEXT
};

static const char *text_option(const struct rootless_settings *settings, const struct text_setting *text) {
        const void *at = (const char *) settings + text->option;

        return *(const char *const *) at;
}

static char **text_field(struct rootless_config *config, const struct text_setting *text) {
        void *at = (char *) config + text->field;

        return at;
}

void rootless_config_done(struct rootless_config *config) {
        for (size_t i = 0; i < nd_count_of(texts); i++)
                free(*text_field(config, &texts[i]));
        free(config->name);
        free(config->data);
        *config = (struct rootless_config) {};
}

bool rootless_config_has_kubernetes(const struct rootless_config *config) {
        return config->join || config->control_plane;
}

static struct nd_error *choose_mtu(const struct rootless_settings *settings, const char *variable, uint32_t *ret) {
        uint32_t mtu = settings->mtu;

        if (mtu == 0 && variable && nd_text_parse_u32(variable, &mtu) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid NODENS_MTU '%s': not a number", variable);
        if (mtu == 0)
                mtu = NET_MTU;
        if (mtu < NET_MTU_MIN || mtu > NET_MTU_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid MTU %u: must be %d to %d", mtu, NET_MTU_MIN, NET_MTU_MAX);
        *ret = mtu;
        return nullptr;
}

static struct nd_error *choose_data(const char *given, bool lasting, rootless_getenv variable, void *userdata,
                                    const char *name, char **ret) {
        const char *home = variable("HOME", userdata), *top = variable("XDG_DATA_HOME", userdata);

        if (given) {
                if (given[0] != '/')
                        return nd_error_new(ND_INVALID, 0, "data directory '%s' is not an absolute path", given);
                *ret = nd_strdup(given);
        } else if (lasting && top && top[0] == '/') {
                *ret = nd_format("%s/nodens/%s", top, name);
        } else if (lasting && home && home[0] == '/') {
                *ret = nd_format("%s/.local/share/nodens/%s", home, name);
        } else if (lasting) {
                return nd_error_new(ND_INVALID, 0, "HOME is not set; choose a data directory with --data");
        }
        return nullptr;
}

bool rootless_settings_flag(bool option, const char *value) {
        return option || (value && (nd_streq(value, "1") || nd_streq(value, "true") || nd_streq(value, "yes")));
}

static struct nd_error *choose_flag(bool option, const char *name, const char *value, bool *ret) {
        *ret = rootless_settings_flag(option, value);
        if (!*ret && value && !nd_streq(value, "0") && !nd_streq(value, "false") && !nd_streq(value, "no"))
                return nd_error_new(ND_INVALID, 0, "invalid %s '%s': must be 1 or 0", name, value);
        return nullptr;
}

static struct nd_error *choose_offset(const struct rootless_settings *settings, const char *variable, uint32_t *ret) {
        uint32_t offset = settings->offset;

        if (offset == 0 && variable && *variable && nd_text_parse_u32(variable, &offset) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid NODENS_OFFSET '%s': not a number", variable);
        if (offset > SETTINGS_OFFSET_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid offset %u: must be at most %d", offset, SETTINGS_OFFSET_MAX);
        *ret = offset;
        return nullptr;
}

/* Settings of Kubernetes that are not text. */
static struct nd_error *choose_cluster(const struct rootless_settings *settings, rootless_getenv variable, void *userdata,
                                       struct rootless_config *config) {
        const char *max_pods = variable("NODENS_MAX_PODS", userdata);

        nd_try(choose_offset(settings, variable("NODENS_OFFSET", userdata), &config->offset));
        config->max_pods = settings->max_pods;
        if (config->max_pods == 0 && max_pods && nd_text_parse_u32(max_pods, &config->max_pods) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid NODENS_MAX_PODS '%s': not a number", max_pods);
        nd_try(choose_flag(settings->taint, "NODENS_TAINT", variable("NODENS_TAINT", userdata), &config->taint));
        nd_try(choose_flag(settings->no_cgroups, "NODENS_NO_CGROUPS", variable("NODENS_NO_CGROUPS", userdata),
                           &config->no_cgroups));
        nd_try(choose_flag(settings->server_tls_bootstrap, "NODENS_SERVER_TLS_BOOTSTRAP",
                           variable("NODENS_SERVER_TLS_BOOTSTRAP", userdata), &config->server_tls_bootstrap));
        nd_try(choose_flag(settings->control_plane, "NODENS_CONTROL_PLANE", variable("NODENS_CONTROL_PLANE", userdata),
                           &config->control_plane));
        if (config->join && config->join[0] != '/')
                return nd_error_new(ND_INVALID, 0, "kubeconfig '%s' is not an absolute path", config->join);
        if (config->control_plane && config->join)
                return nd_error_new(ND_INVALID, 0,
                                    "--join and --control-plane exclude each other: a node is part of one cluster");
        if (config->control_plane && (config->net == NET_DRIVER_HOST || config->net == NET_DRIVER_NONE))
                return nd_error_new(ND_INVALID, 0, "--control-plane needs a network of the node, not --net %s",
                                    rootless_net_driver_name(config->net));
        if (config->peers && config->peers[0] != '/')
                return nd_error_new(ND_INVALID, 0, "list of nodes '%s' is not an absolute path", config->peers);
        if (config->cni && config->cni[0] != '/')
                return nd_error_new(ND_INVALID, 0, "CNI configuration '%s' is not an absolute path", config->cni);
        if (config->cni && (config->peers || config->pod_cidr))
                return nd_error_new(ND_INVALID, 0,
                                    "--cni and %s exclude each other: both say what network the node's pods have",
                                    config->peers ? "--peers" : "--pod-cidr");
        return nullptr;
}

struct nd_error *rootless_config_resolve(const struct rootless_settings *settings, bool lasting, rootless_getenv variable,
                                         void *userdata, struct rootless_config *ret) {
        nd_cleanup(rootless_config_done) struct rootless_config config = {};
        const char *net = settings->net ? settings->net : variable("NODENS_NET", userdata),
                   *data = settings->data ? settings->data : variable("NODENS_DATA", userdata);

        if (!settings->name || !rootless_node_name_valid(settings->name))
                return nd_error_new(ND_INVALID, 0, "invalid node name '%s': use lowercase letters, digits and '-'",
                                    settings->name ? settings->name : "");
        config.name = nd_strdup(settings->name);
        config.net = NET_DRIVER_DEFAULT;
        config.net_given = net != nullptr;
        if (net)
                nd_try(rootless_net_driver_parse(net, &config.net));
        nd_try(choose_flag(settings->inside, "NODENS_INSIDE", variable("NODENS_INSIDE", userdata), &config.inside));
        nd_try(choose_flag(settings->ephemeral, "NODENS_EPHEMERAL", variable("NODENS_EPHEMERAL", userdata),
                           &config.ephemeral));
        nd_try(choose_mtu(settings, variable("NODENS_MTU", userdata), &config.mtu));
        nd_try(choose_data(data, lasting && !config.ephemeral, variable, userdata, config.name, &config.data));
        for (size_t i = 0; i < nd_count_of(texts); i++) {
                const char *option = text_option(settings, &texts[i]),
                           *value = option ? option : variable(texts[i].variable, userdata);

                /* an empty variable is an unset one: that is how a file disables it */
                if (value && *value)
                        *text_field(&config, &texts[i]) = nd_strdup(value);
        }
        nd_try(choose_cluster(settings, variable, userdata, &config));
        *ret = nd_take(config, (struct rootless_config) {});
        return nullptr;
}

/* systemd reads the value of a line between double quotes, in which a backslash escapes these
 * characters. */
static struct nd_error *add_line(struct nd_text *text, const char *name, const char *value) {
        if (!nd_text_utf8_valid(value, strlen(value)))
                return nd_error_new(ND_INVALID, 0, "invalid %s: systemd accepts UTF-8 only", name);
        nd_text_addf(text, "%s=\"", name);
        for (const char *c = value; *c; c++) {
                if ((unsigned char) *c < ' ' || *c == '\x7f')
                        return nd_error_new(ND_INVALID, 0, "invalid %s: it has a control character", name);
                if (strchr("\"\\`$", *c))
                        nd_text_add(text, "\\");
                nd_text_append(text, c, 1);
        }
        nd_text_add(text, "\"\n");
        return nullptr;
}

bool rootless_settings_any(const struct rootless_settings *settings) {
        for (size_t i = 0; i < nd_count_of(texts); i++)
                if (text_option(settings, &texts[i]))
                        return true;
        return settings->net || settings->data || settings->mtu || settings->max_pods || settings->offset || settings->taint ||
               settings->no_cgroups || settings->server_tls_bootstrap || settings->inside || settings->ephemeral ||
               settings->control_plane;
}

static struct nd_error *add_setting(struct nd_text *text, const char *name, const char *option, rootless_getenv variable,
                                    void *userdata) {
        const char *value = option ? option : variable(name, userdata);

        return value ? add_line(text, name, value) : nullptr;
}

struct nd_error *rootless_settings_format(const struct rootless_settings *settings, rootless_getenv variable, void *userdata,
                                          struct nd_text *ret) {
        nd_autofree char *mtu = settings->mtu ? nd_format("%u", settings->mtu) : nullptr,
                         *max_pods = settings->max_pods ? nd_format("%u", settings->max_pods) : nullptr,
                         *offset = settings->offset ? nd_format("%u", settings->offset) : nullptr;
        const struct {
                const char *name, *option;
        } lines[] = {
                {"NODENS_NET", settings->net},
                {"NODENS_MTU", mtu},
                {"NODENS_DATA", settings->data},
                {"NODENS_MAX_PODS", max_pods},
                {"NODENS_OFFSET", offset},
                {"NODENS_TAINT", settings->taint ? "1" : nullptr},
                {"NODENS_NO_CGROUPS", settings->no_cgroups ? "1" : nullptr},
                {"NODENS_SERVER_TLS_BOOTSTRAP", settings->server_tls_bootstrap ? "1" : nullptr},
                {"NODENS_INSIDE", settings->inside ? "1" : nullptr},
                {"NODENS_EPHEMERAL", settings->ephemeral ? "1" : nullptr},
                {"NODENS_CONTROL_PLANE", settings->control_plane ? "1" : nullptr},
        };

        *ret = ND_TEXT(SETTINGS_BYTES);
        for (size_t i = 0; i < nd_count_of(lines); i++)
                nd_try(add_setting(ret, lines[i].name, lines[i].option, variable, userdata));
        for (size_t i = 0; i < nd_count_of(texts); i++)
                nd_try(add_setting(ret, texts[i].variable, text_option(settings, &texts[i]), variable, userdata));
        return ret->overflow ? nd_error_new(ND_INVALID, 0, "the options are longer than %d bytes", SETTINGS_BYTES) : nullptr;
}

/* ---- the environment in the node ---- */

static bool is_variable(const char *entry, const char *name) {
        size_t length = strlen(name);

        return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool stays_outside(const char *entry) {
        static const char *const names[] = {
                "HOME",
                "USER",
                "LOGNAME",
                "PWD",
                "OLDPWD",
                "SHELL",
                "MAIL",
                "PATH",
                "TMPDIR",
                "XDG_RUNTIME_DIR",
                "XDG_DATA_HOME",
                "XDG_CONFIG_HOME",
                "XDG_CACHE_HOME",
                "XDG_STATE_HOME",
                "DBUS_SESSION_BUS_ADDRESS",
                "SSH_AUTH_SOCK",
                "SSH_AGENT_PID",
                "GPG_AGENT_INFO",
                "GNUPGHOME",
                "DISPLAY",
                "WAYLAND_DISPLAY",
                "XAUTHORITY",
                "ICEAUTHORITY",
                "SESSION_MANAGER",
                "NOTIFY_SOCKET",
                "LISTEN_FDS",
                "LISTEN_PID",
                "LISTEN_FDNAMES",
                "WATCHDOG_USEC",
                "WATCHDOG_PID",
                "INVOCATION_ID",
                "JOURNAL_STREAM",
                "MANAGERPID",
                "SYSTEMD_EXEC_PID",
                "CREDENTIALS_DIRECTORY",
        };
        static const char *const ours[] = {"ROOTLESSKIT_STATE_DIR", "ROOTLESSKIT_PARENT_EUID", "ROOTLESSKIT_PARENT_EGID",
                                           "NODENS_NODE"};

        for (size_t i = 0; i < nd_count_of(names); i++)
                if (is_variable(entry, names[i]))
                        return true;
        for (size_t i = 0; i < nd_count_of(ours); i++)
                if (is_variable(entry, ours[i]))
                        return true;
        return false;
}

struct nd_strings rootless_config_environment(char *const *ours, const char *name, const char *api, const char *uid,
                                              const char *gid) {
        static const char *const fixed[] = {"HOME=/root",
                                            "USER=root",
                                            "LOGNAME=root",
                                            "SHELL=/bin/sh",
                                            "XDG_RUNTIME_DIR=/run/user/0",
                                            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
        struct nd_strings environment = {};

        for (; *ours; ours++)
                if (!stays_outside(*ours))
                        nd_strings_add(&environment, *ours);
        for (size_t i = 0; i < nd_count_of(fixed); i++)
                nd_strings_add(&environment, fixed[i]);
        nd_strings_addf(&environment, "NODENS_NODE=%s", name);
        nd_strings_addf(&environment, "ROOTLESSKIT_STATE_DIR=%s", api);
        nd_strings_addf(&environment, "ROOTLESSKIT_PARENT_EUID=%s", uid);
        nd_strings_addf(&environment, "ROOTLESSKIT_PARENT_EGID=%s", gid);
        nd_strings_add_owned(&environment, nullptr);
        return environment;
}
