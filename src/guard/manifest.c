/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "guard/core/config.h"
#include "guard/install/install-manifest.h"
#include "guard/install/yaml-out.h"
#include "guard/server/drain.h"
#include "net/certificate-expiry.h"
#include "sys/file.h"

enum {
        MANIFEST_BYTES = 4 << 20,
        CA_BYTES = 1 << 20,
        CONFIG_BYTES = 1 << 20,
        SPARE_SECONDS = 10, /* between the guard's own end and a kill by the kubelet */
};

#define NO_CA "none"
#define KUBECONFIG "/etc/kubernetes/nodens-guard.kubeconfig"
#define AUTHORIZER_KUBECONFIG "/etc/kubernetes/nodens-authorizer.kubeconfig"
#define AUTHORIZER_URL "https://127.0.0.1:9444"
#define CLUSTER_CA "/etc/kubernetes/pki/ca.crt"
#define CLIENT "/etc/kubernetes/pki/apiserver-kubelet-client" /* as kubeadm calls it */

const struct nd_option guard_manifest_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration: source of group and defaultMode"},
        {.name = "namespace",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, namespace),
         .argument = "NAME",
         .help = "namespace of the guard's service account and service (default nodens-system)"},
        {.name = "service",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, service),
         .argument = "NAME",
         .help = "service through which the API server reaches the guard (default nodens-guard)"},
        {.name = "url",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, url),
         .argument = "https://ADDRESS:PORT",
         .help = "address of the guard for the API server, instead of a service; in authorization-kubeconfig that of the"
                 " authorizer (default " AUTHORIZER_URL ")"},
        {.name = "ca-file",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, ca_file),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "certificate authority of the guard's certificate, for webhooks; '" NO_CA
                 "' if API servers trust it already or a controller injects it"},
        {.name = "api-servers",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, api_servers),
         .argument = "CIDR,...",
         .help = "addresses of the API servers, for network and deployment"},
        {.name = "kubeconfig",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, kubeconfig),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "path of the printed kubeconfig on the API server's host (default " KUBECONFIG
                 ", for authorization " AUTHORIZER_KUBECONFIG ")"},
        {.name = "client-certificate",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, client_certificate),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "client certificate: in kubeconfig and authorization-kubeconfig the API server's (default " CLIENT
                 ".crt), in guard-kubeconfig the guard's (default: a token file)"},
        {.name = "client-key",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, client_key),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "key of that certificate (default " CLIENT ".key)"},
        {.name = "user",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, user),
         .argument = "NAME",
         .help = "user that gets the guard's rights in rbac besides the service account: the common name of a client certificate"},
        {.name = "server",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, server),
         .argument = "https://ADDRESS:PORT",
         .help = "address of the API server, for guard-kubeconfig"},
        {.name = "cluster-ca",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, cluster_ca),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "path of the API server's authority on the guard's host, for guard-kubeconfig (default " CLUSTER_CA ")"},
        {.name = "image",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, image),
         .argument = "IMAGE",
         .help = "image of the guard, for deployment and authorizer"},
        {.name = "client-ca-file",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, client_ca_file),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "authority of the API servers' client certificates, for deployment"},
        {.name = "json",
         .offset = offsetof(struct guard_manifest_settings, json),
         .help = "print JSON documents instead of YAML"},
        {},
};

/* ---- checks ---- */

static bool is_host(const char *host, size_t length) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.",
                          of_ipv6[] = "0123456789abcdefABCDEF:.";

        if (length > 2 && *host == '[')
                return host[length - 1] == ']' && strspn(host + 1, of_ipv6) == length - 2;
        return length > 0 && strspn(host, allowed) >= length;
}

/* https://HOST[:PORT][/PATH]: what API servers accept for a webhook and a kubeconfig needs. */
static struct nd_error *check_url(const char *option, const char *url) {
        static const char scheme[] = "https://";
        const char *host = nd_has_prefix(url, scheme) ? url + strlen(scheme) : nullptr;
        size_t authority = host ? strcspn(host, "/?#") : 0, length = authority;
        const char *path = host ? host + authority : "", *colon = nullptr;
        uint64_t port = 443;

        for (size_t i = authority; host && i > 0 && !colon && host[i - 1] != ']'; i--)
                colon = host[i - 1] == ':' ? host + i - 1 : nullptr;
        if (colon) {
                nd_autofree char *digits = nd_strndup(colon + 1, (size_t) (host + authority - colon - 1));

                length = (size_t) (colon - host);
                if (nd_text_parse_u64(digits, UINT16_MAX, &port) < 0)
                        port = 0;
        }
        if (!host || !is_host(host, length) || port == 0 || strpbrk(path, "?#@ \t\r\n") ||
            (*path && path[strlen(path) - 1] == '/'))
                return nd_error_new(
                        ND_INVALID, 0,
                        "--%s: '%s' is not of the form https://ADDRESS:PORT (https only, without a trailing slash, query "
                        "or user)",
                        option, url);
        return nullptr;
}

/* A private key must not get into an object of the cluster by mistake. */
static struct nd_error *read_ca(const char *option, const char *path, char **ret) {
        nd_autofree char *text = nullptr;
        time_t expires = 0;

        nd_try(nd_error_wrap(nd_file_read_kernel(path, CA_BYTES, &text), "--%s", option));
        nd_try(nd_error_wrap(nd_certificate_expiry_read(text, nullptr, &expires), "--%s: '%s'", option, path));
        if (strstr(text, "PRIVATE KEY")) {
                explicit_bzero(text, strlen(text));
                return nd_error_new(ND_INVALID, 0, "--%s: '%s' contains a private key; give a file with certificates only",
                                    option, path);
        }
        *ret = nd_take_ptr(text);
        return nullptr;
}

static struct nd_error *check_part(enum guard_install_part part, const struct guard_manifest_settings *s) {
        if (part == GUARD_INSTALL_NETWORK && !s->api_servers)
                return nd_error_new(ND_INVALID, 0,
                                    "network needs --api-servers: without addresses the policy would admit every client");
        if (part == GUARD_INSTALL_WEBHOOKS && !s->ca_file)
                return nd_error_new(
                        ND_INVALID, 0,
                        "webhooks needs --ca-file, the authority of the guard's certificate (" GUARD_DIRECTORY
                        "/ca.crt if `nodens-guard certificate` made it): without it API servers do not accept the guard; "
                        "--ca-file " NO_CA " leaves it out");
        if (part == GUARD_INSTALL_GUARD_KUBECONFIG && !s->server)
                return nd_error_new(
                        ND_INVALID, 0,
                        "guard-kubeconfig needs --server, the address of the API server as in `kubectl config view`");
        if ((part == GUARD_INSTALL_DEPLOYMENT || part == GUARD_INSTALL_AUTHORIZER) && !s->image)
                return nd_error_new(ND_INVALID, 0, "%s needs --image; docs/guard.md says how to build one",
                                    guard_install_part_names[part]);
        return nullptr;
}

static struct nd_error *part_of(const char *name, enum guard_install_part *ret) {
        for (enum guard_install_part part = 0; part < GUARD_INSTALL_PARTS; part++)
                if (nd_streq(name, guard_install_part_names[part])) {
                        *ret = part;
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown part '%s'; use " GUARD_MANIFEST_PARTS, name);
}

/* Whether the command line is wrong; before anything is printed. */
static struct nd_error *check_usage(const struct guard_manifest_settings *s, int count, char **names) {
        enum guard_install_part part = GUARD_INSTALL_PARTS;

        if (count == 0)
                return nd_error_new(ND_INVALID, 0, "no part given; use " GUARD_MANIFEST_PARTS);
        for (int i = 0; i < count; i++) {
                nd_try(part_of(names[i], &part));
                nd_try(check_part(part, s));
        }
        if (s->url)
                nd_try(check_url("url", s->url));
        if (s->server)
                nd_try(check_url("server", s->server));
        if (!s->client_certificate != !s->client_key)
                return nd_error_new(ND_INVALID, 0, "--client-certificate and --client-key must be given together");
        return nullptr;
}

/* A Deployment without an authority of clients would not start, unless its configuration names
 * one. */
static struct nd_error *check_clients(const struct guard_manifest_settings *s, const struct guard_config *config, int count,
                                      char **names) {
        bool configured = guard_config_reads_client_ca(config) || (config->client_ca && !guard_config_authenticates(config));

        for (int i = 0; i < count; i++)
                if (nd_streq(names[i], guard_install_part_names[GUARD_INSTALL_DEPLOYMENT]) && !s->client_ca_file &&
                    !configured)
                        return nd_error_new(
                                ND_INVALID, 0,
                                "deployment needs --client-ca-file, the authority of the API servers' client certificates "
                                "(with kubeadm /etc/kubernetes/pki/ca.crt), or clientCA: cluster in its configuration");
        return nullptr;
}

/* ---- output ---- */

/* Nothing is printed unless all of it can be. */
static struct nd_error *print_documents(const struct guard_install_settings *manifest,
                                        const struct guard_manifest_settings *options, int count, char **names) {
        nd_autotext struct nd_text json = ND_TEXT(MANIFEST_BYTES), yaml = ND_TEXT(MANIFEST_BYTES);
        enum guard_install_part part = GUARD_INSTALL_PARTS;

        for (int i = 0; i < count; i++) {
                nd_try(part_of(names[i], &part));
                guard_install_manifest_write(part, manifest, &json);
        }
        if (!options->json)
                guard_yaml_out_write(nd_text_get(&json), &yaml);
        (void) fputs(nd_text_get(options->json ? &json : &yaml), stdout);
        if (fflush(stdout) != 0 || ferror(stdout))
                return nd_error_new(ND_INTERNAL, errno, "write to standard output");
        return nullptr;
}

static const char *or_default(const char *value, const char *otherwise) {
        return value ? value : otherwise;
}

/* The file that guard_config_read() reads, if there is one. */
static struct nd_error *read_config_text(const char *path, char **ret) {
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path ? path : GUARD_CONFIG_PATH, CONFIG_BYTES, ret);

        return error && (path || nd_error_code(error) != ND_NOT_FOUND) ? nd_take_ptr(error) : nullptr;
}

static struct nd_error *print_parts(const struct guard_manifest_settings *s, int count, char **parts) {
        nd_cleanup(guard_config_done) struct guard_config config = {};
        nd_autofree char *ca = nullptr, *client_ca = nullptr, *config_text = nullptr;
        struct guard_install_settings manifest;

        nd_try(guard_config_read(GUARD_ROLE_ADMISSION, s->config, &config));
        nd_try(check_clients(s, &config, count, parts));
        nd_try(read_config_text(s->config, &config_text));
        if (s->ca_file && !nd_streq(s->ca_file, NO_CA))
                nd_try(read_ca("ca-file", s->ca_file, &ca));
        if (s->client_ca_file)
                nd_try(read_ca("client-ca-file", s->client_ca_file, &client_ca));
        manifest = (struct guard_install_settings) {.group = config.group,
                                                    .namespace = or_default(s->namespace, "nodens-system"),
                                                    .service = or_default(s->service, "nodens-guard"),
                                                    .url = s->url,
                                                    .ca = ca,
                                                    .default_mode = config.default_mode,
                                                    .standards = &config.standards,
                                                    .kubeconfig = or_default(s->kubeconfig, KUBECONFIG),
                                                    .client_certificate = or_default(s->client_certificate, CLIENT ".crt"),
                                                    .client_key = or_default(s->client_key, CLIENT ".key"),
                                                    .api_servers = s->api_servers,
                                                    .port = (uint16_t) config.port,
                                                    .grace_seconds = config.drain_seconds + GUARD_DRAIN_FINISH + SPARE_SECONDS,
                                                    .user = s->user,
                                                    .server = s->server,
                                                    .cluster_ca = or_default(s->cluster_ca, CLUSTER_CA),
                                                    .token_file = s->client_certificate ? nullptr : GUARD_DIRECTORY "/token",
                                                    .own_certificate = s->client_certificate,
                                                    .own_key = s->client_key,
                                                    .image = s->image,
                                                    .client_ca = client_ca,
                                                    .config = config_text,
                                                    .makes_certificate = guard_config_makes_certificate(&config),
                                                    .reads_client_ca = guard_config_reads_client_ca(&config),
                                                    .syncs_labels = guard_config_computes_labels(&config),
                                                    .authorizer_url = or_default(s->url, AUTHORIZER_URL),
                                                    .authorizer_kubeconfig = or_default(s->kubeconfig, AUTHORIZER_KUBECONFIG),
                                                    .authorizer_ca = GUARD_AUTHORIZER_DIRECTORY "/ca.crt"};
        return print_documents(&manifest, s, count, parts);
}

int guard_manifest_run(void *settings, int operand_count, char **operands) {
        nd_autoerror struct nd_error *usage = check_usage(settings, operand_count, operands), *error = nullptr;

        if (usage) {
                nd_log(ND_LOG_ERROR, nd_error_text(usage));
                return ND_EXIT_USAGE;
        }
        error = print_parts(settings, operand_count, operands);
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
