/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/manifest.h"

#include <stdio.h>

#include "base/log.h"
#include "guard/core/config.h"
#include "guard/install/install-manifest.h"
#include "sys/file.h"

enum {
        MANIFEST_BYTES = 4 << 20,
        CA_BYTES = 1 << 20,
};

#define PARTS "crd, constraints, rbac, webhooks, network, admission or kubeconfig"
#define KUBECONFIG "/etc/kubernetes/nodens-guard.kubeconfig"
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
         .help = "address of the guard for the API server, instead of a service"},
        {.name = "ca-file",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, ca_file),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "certificate authority of the guard's certificate, for the API server"},
        {.name = "api-servers",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, api_servers),
         .argument = "CIDR,...",
         .help = "addresses of the API servers, for network"},
        {.name = "kubeconfig",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, kubeconfig),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "path of the printed kubeconfig on the API server's host (default " KUBECONFIG ")"},
        {.name = "client-certificate",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, client_certificate),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "API server's client certificate for the guard (default " CLIENT ".crt)"},
        {.name = "client-key",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_manifest_settings, client_key),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "key of that certificate (default " CLIENT ".key)"},
        {},
};

static struct nd_error *print_part(const char *name, const struct guard_install_settings *settings) {
        nd_autotext struct nd_text text = ND_TEXT(MANIFEST_BYTES);

        for (enum guard_install_part part = 0; part < GUARD_INSTALL_PARTS; part++)
                if (nd_streq(name, guard_install_part_names[part])) {
                        if (part == GUARD_INSTALL_NETWORK && !settings->api_servers)
                                return nd_error_new(
                                        ND_INVALID, 0,
                                        "network needs --api-servers: without addresses the policy would admit every client");
                        guard_install_manifest_write(part, settings, &text);
                        (void) fputs(nd_text_get(&text), stdout);
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown part '%s'; use " PARTS, name);
}

static struct nd_error *print_parts(const struct guard_manifest_settings *settings, int count, char **parts) {
        nd_cleanup(guard_config_done) struct guard_config config = {};
        nd_autofree char *ca = nullptr;
        struct guard_install_settings manifest;

        nd_try(guard_config_read(settings->config, &config));
        if (settings->ca_file)
                nd_try(nd_file_read_kernel(settings->ca_file, CA_BYTES, &ca));
        manifest = (struct guard_install_settings) {
                .group = config.group,
                .namespace = settings->namespace ? settings->namespace : "nodens-system",
                .service = settings->service ? settings->service : "nodens-guard",
                .url = settings->url,
                .ca = ca,
                .default_mode = config.default_mode,
                .standards = &config.standards,
                .kubeconfig = settings->kubeconfig ? settings->kubeconfig : KUBECONFIG,
                .client_certificate = settings->client_certificate ? settings->client_certificate : CLIENT ".crt",
                .client_key = settings->client_key ? settings->client_key : CLIENT ".key",
                .api_servers = settings->api_servers,
                .port = (uint16_t) config.port};
        for (int i = 0; i < count; i++) {
                if (i > 0)
                        (void) fputs("---\n", stdout);
                nd_try(print_part(parts[i], &manifest));
        }
        return nullptr;
}

int guard_manifest_run(void *settings, int operand_count, char **operands) {
        nd_autoerror struct nd_error *error = nullptr;

        if (operand_count == 0)
                error = nd_error_new(ND_INVALID, 0, "no part given; use " PARTS);
        else
                error = print_parts(settings, operand_count, operands);
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
