/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/program.h"

#include <malloc.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "guard/daemon.h"
#include "guard/install/install-manifest.h"
#include "sys/file.h"

enum {
        MANIFEST_BYTES = 4 << 20,
        CA_BYTES = 1 << 20,
};

#define PARTS "crd, constraints, rbac, webhooks, network, admission or kubeconfig"
#define KUBECONFIG "/etc/kubernetes/nodens-guard.kubeconfig"
#define CLIENT "/etc/kubernetes/pki/apiserver-kubelet-client" /* as kubeadm calls it */

struct serve_settings {
        const char *config;
        bool debug;
};

struct manifest_settings {
        const char *config, *namespace, *service, *url, *ca_file;
        const char *kubeconfig, *client_certificate, *client_key, *api_servers;
};

static const struct nd_option serve_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct serve_settings, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration (default " GUARD_CONFIG_PATH ", if it is there)"},
        {.name = "debug", .offset = offsetof(struct serve_settings, debug), .help = "log more"},
        {},
};

static const struct nd_option manifest_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration: group and defaultMode are taken from it"},
        {.name = "namespace",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, namespace),
         .argument = "NAME",
         .help = "where the guard's service account and service are (default nodens-system)"},
        {.name = "service",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, service),
         .argument = "NAME",
         .help = "the service by which the API server reaches the guard (default nodens-guard)"},
        {.name = "url",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, url),
         .argument = "https://ADDRESS:PORT",
         .help = "where the API server reaches the guard, instead of a service"},
        {.name = "ca-file",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, ca_file),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "certificate authority of the guard's certificate, for the API server"},
        {.name = "api-servers",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, api_servers),
         .argument = "CIDR,...",
         .help = "addresses of the API servers, for network"},
        {.name = "kubeconfig",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, kubeconfig),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "where the API server finds what kubeconfig prints (default " KUBECONFIG ")"},
        {.name = "client-certificate",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, client_certificate),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "the API server's certificate for the guard (default " CLIENT ".crt)"},
        {.name = "client-key",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct manifest_settings, client_key),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "and its key (default " CLIENT ".key)"},
        {},
};

static int report(const struct nd_error *error) {
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Pages of lists and bodies of reviews come and go, some of them large. What is larger than a few pages goes back to the system when it is
 * freed, and so does the end of the heap: what is kept is small and lies together. */
static void tune_memory(void) {
        (void) mallopt(M_MMAP_THRESHOLD, 64 << 10);
        (void) mallopt(M_TRIM_THRESHOLD, 256 << 10);
        (void) mallopt(M_TOP_PAD, 64 << 10);
        (void) mallopt(M_ARENA_MAX, 1);
}

static struct nd_error *serve(const struct serve_settings *settings) {
        nd_cleanup(guard_daemon_done) struct guard_daemon guard = {};
        int r;

        tune_memory();
        nd_try(guard_config_read(settings->config, &guard.config));
        nd_try(guard_daemon_start(&guard));
        r = sd_event_loop(guard.loop);
        (void) sd_notify(false, "STOPPING=1");
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "event loop") : nullptr;
}

static int run_serve(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        nd_autoerror struct nd_error *error = nullptr;

        if (((const struct serve_settings *) settings)->debug)
                nd_log_set_level(ND_LOG_DEBUG);
        error = serve(settings);
        return report(error);
}

static struct nd_error *print_part(const char *name, const struct guard_install_settings *settings) {
        nd_autotext text = ND_TEXT(MANIFEST_BYTES);

        for (enum guard_install_part part = 0; part < GUARD_INSTALL_PARTS; part++)
                if (nd_streq(name, guard_install_part_names[part])) {
                        if (part == GUARD_INSTALL_NETWORK && !settings->api_servers)
                                return nd_error_new(ND_INVALID, 0,
                                                    "network needs --api-servers: a policy that lets everything in is none");
                        guard_install_manifest_write(part, settings, &text);
                        (void) fputs(nd_text_get(&text), stdout);
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "there is no part '%s'; there are " PARTS, name);
}

static struct nd_error *print_parts(const struct manifest_settings *settings, int count, char **parts) {
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

static int run_manifest(void *settings, int operand_count, char **operands) {
        nd_autoerror struct nd_error *error = nullptr;

        if (operand_count == 0)
                error = nd_error_new(ND_INVALID, 0, "name what to print: " PARTS);
        else
                error = print_parts(settings, operand_count, operands);
        return report(error);
}

static const struct nd_command commands[] = {
        {.name = "serve",
         .summary = "answer the API server's admission reviews",
         .options = serve_options,
         .settings_size = sizeof(struct serve_settings),
         .run = run_serve},
        {.name = "manifest",
         .summary = "print what the cluster needs, for `kubectl apply -f -`",
         .operands = "crd|constraints|rbac|webhooks|network|admission|kubeconfig ...",
         .options = manifest_options,
         .settings_size = sizeof(struct manifest_settings),
         .run = run_manifest},
        {},
};

const struct nd_program guard_program = {
        .name = "nodens-guard", .summary = "who may run what, as admission for any Kubernetes", .commands = commands};
