/* SPDX-License-Identifier: Apache-2.0 */
/* install-manifest.c - see install-manifest.h
 *
 * The objects are the templates of this folder (*.yaml); this file fills in their values. Only the
 * default constraints are written from a table, in policy/scc-defaults.c, which also decides
 * reviews. */
#include "guard/install/install-manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "guard/install/constraint-manifest.h"
#include "guard/install/template.h"
#include "policy/floor.h"

const char *const guard_install_part_names[] = {
        [GUARD_INSTALL_CRD] = "crd",
        [GUARD_INSTALL_CONSTRAINTS] = "constraints",
        [GUARD_INSTALL_RBAC] = "rbac",
        [GUARD_INSTALL_WEBHOOKS] = "webhooks",
        [GUARD_INSTALL_NETWORK] = "network",
        [GUARD_INSTALL_ADMISSION] = "admission",
        [GUARD_INSTALL_KUBECONFIG] = "kubeconfig",
        [GUARD_INSTALL_GUARD_KUBECONFIG] = "guard-kubeconfig",
        [GUARD_INSTALL_DEPLOYMENT] = "deployment",
        [GUARD_INSTALL_NODES] = "nodes",
        [GUARD_INSTALL_AUTHORIZATION] = "authorization",
        [GUARD_INSTALL_AUTHORIZATION_KUBECONFIG] = "authorization-kubeconfig",
        [GUARD_INSTALL_AUTHORIZER] = "authorizer",
};
static_assert(nd_count_of(guard_install_part_names) == GUARD_INSTALL_PARTS);

static const char *const templates[] = {
        [GUARD_INSTALL_CRD] = guard_template_crd,
        [GUARD_INSTALL_CONSTRAINTS] = guard_template_grant, /* after each constraint */
        [GUARD_INSTALL_RBAC] = guard_template_rbac,
        [GUARD_INSTALL_WEBHOOKS] = guard_template_webhooks,
        [GUARD_INSTALL_NETWORK] = guard_template_network,
        [GUARD_INSTALL_ADMISSION] = guard_template_admission,
        [GUARD_INSTALL_KUBECONFIG] = guard_template_kubeconfig,
        [GUARD_INSTALL_GUARD_KUBECONFIG] = guard_template_guard_kubeconfig,
        [GUARD_INSTALL_DEPLOYMENT] = guard_template_deployment,
        [GUARD_INSTALL_NODES] = guard_template_nodes,
        [GUARD_INSTALL_AUTHORIZATION] = guard_template_authorization,
        [GUARD_INSTALL_AUTHORIZATION_KUBECONFIG] = guard_template_authorization_kubeconfig,
        [GUARD_INSTALL_AUTHORIZER] = guard_template_authorizer,
};
static_assert(nd_count_of(templates) == GUARD_INSTALL_PARTS);

/* ---- values ---- */

static const char *set_if(bool condition) {
        return condition ? "" : nullptr;
}

/* Returns the name under which an API server looks up the user: that of a service, or host and port
 * of a URL. */
static char *server_name(const struct guard_install_settings *settings) {
        static const char scheme[] = "https://";
        const char *host;

        if (!settings->url)
                return nd_format("%s.%s.svc", nd_kube_or_empty(settings->service), nd_kube_or_empty(settings->namespace));
        host = nd_has_prefix(settings->url, scheme) ? settings->url + strlen(scheme) : settings->url;
        return nd_strndup(host, strcspn(host, "/"));
}

/* Writes a template; constraint is the subject of grant.yaml, or nullptr. */
static void write_template(const char *template, const struct guard_install_settings *settings,
                           const struct nd_scc_default *constraint, struct nd_text *text) {
        nd_autofree char *bundle = settings->ca ? nd_base64(settings->ca, strlen(settings->ca)) : nullptr;
        nd_autofree char *server = server_name(settings);
        const char *mode = nd_kube_or_empty(settings->default_mode);
        const char *prefix = settings->standards ? settings->standards->prefix : nullptr;
        bool by_label = prefix && guard_standards_are_privileged(&settings->standards->defaults);
        char port[16], grace[16];

        (void) snprintf(port, sizeof port, "%u", settings->port);
        (void) snprintf(grace, sizeof grace, "%u", settings->grace_seconds);
        guard_template_write(
                template,
                (const struct guard_template_value[]) {
                        {.name = "group", .value = settings->group},
                        {.name = "namespace", .value = settings->namespace},
                        {.name = "service", .value = settings->service},
                        {.name = "url", .value = settings->url},
                        {.name = "ca-bundle", .value = bundle},
                        {.name = "default-enforce", .value = set_if(nd_streq(mode, "enforce"))},
                        {.name = "default-off", .value = set_if(nd_streq(mode, "off"))},
                        {.name = "default-warn", .value = set_if(nd_streq(mode, "warn"))},
                        {.name = "pod-security", .value = set_if(prefix)},
                        {.name = "pod-security-labels", .value = set_if(by_label)},
                        {.name = "pod-security-path", .value = by_label ? "/pod-security/enforce" : "/pod-security"},
                        {.name = "label-prefix", .value = prefix},
                        {.name = "api-servers", .value = settings->api_servers},
                        {.name = "port", .value = port, .is_number = true},
                        {.name = "grace", .value = grace, .is_number = true},
                        {.name = "kubeconfig", .value = settings->kubeconfig},
                        {.name = "server-name", .value = server},
                        {.name = "client-certificate", .value = settings->client_certificate},
                        {.name = "client-key", .value = settings->client_key},
                        {.name = "user", .value = settings->user},
                        {.name = "server", .value = settings->server},
                        {.name = "cluster-ca", .value = settings->cluster_ca},
                        {.name = "token-file", .value = settings->token_file},
                        {.name = "own-certificate", .value = settings->own_certificate},
                        {.name = "own-key", .value = settings->own_key},
                        {.name = "image", .value = settings->image},
                        {.name = "client-ca", .value = settings->client_ca},
                        {.name = "config", .value = settings->config},
                        {.name = "config-path", .value = settings->config ? "/etc/nodens/guard/guard.yaml" : nullptr},
                        {.name = "makes-certificate", .value = set_if(settings->makes_certificate)},
                        {.name = "reads-client-ca", .value = set_if(settings->reads_client_ca)},
                        {.name = "syncs-labels", .value = set_if(settings->syncs_labels)},
                        {.name = "changes", .value = GUARD_INSTALL_CHANGES},
                        {.name = "minimum", .value = ND_FLOOR_REQUIRED},
                        {.name = "authorizer-url", .value = settings->authorizer_url},
                        {.name = "authorizer-kubeconfig", .value = settings->authorizer_kubeconfig},
                        {.name = "authorizer-ca", .value = settings->authorizer_ca},
                        {.name = "constraint", .value = constraint ? constraint->scc.metadata.name : nullptr},
                        {.name = "for_all_users", .value = set_if(constraint && constraint->for_all_users)},
                        {},
                },
                text);
}

void guard_install_manifest_write(enum guard_install_part part, const struct guard_install_settings *settings,
                                  struct nd_text *text) {
        if (part != GUARD_INSTALL_CONSTRAINTS) {
                write_template(templates[part], settings, nullptr, text);
                if (part == GUARD_INSTALL_DEPLOYMENT && settings->api_servers)
                        write_template(templates[GUARD_INSTALL_NETWORK], settings, nullptr, text);
                return;
        }
        for (size_t i = 0; i < nd_scc_default_count; i++) {
                guard_constraint_manifest_write(&nd_scc_defaults[i], settings->group, text);
                write_template(templates[part], settings, &nd_scc_defaults[i], text);
        }
        write_template(guard_template_floor, settings, nullptr, text);
}
