/* SPDX-License-Identifier: Apache-2.0 */
/* manifest-access.c - how API servers, and no other clients, reach the guard: their client certificate, and a NetworkPolicy
 *
 * An API server takes client certificates for webhooks from a file: an AdmissionConfiguration (--admission-control-config-file) names a
 * kubeconfig, and that has a user for each server that webhooks are at. */
#include "guard/install/manifest-access.h"

#include <string.h>

#include "base/json.h"

enum {
        INDENT = 2,
        NETWORK_LENGTH = 64,
};

static void begin(struct nd_json_out *out, struct nd_text *text, const char *version, const char *kind) {
        *out = (struct nd_json_out) {.text = text, .indent = INDENT};
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "apiVersion", version);
        nd_json_string(out, "kind", kind);
}

static void end(struct nd_json_out *out) {
        nd_json_close(out, '}');
        nd_text_add(out->text, "\n");
}

void guard_manifest_write_admission(const struct guard_install_settings *settings, struct nd_text *text) {
        static const char *const plugins[] = {"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"};
        struct nd_json_out out;

        begin(&out, text, "apiserver.config.k8s.io/v1", "AdmissionConfiguration");
        nd_json_open(&out, "plugins", '[');
        for (size_t i = 0; i < nd_count_of(plugins); i++) {
                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "name", plugins[i]);
                nd_json_open(&out, "configuration", '{');
                nd_json_string(&out, "apiVersion", "apiserver.config.k8s.io/v1");
                nd_json_string(&out, "kind", "WebhookAdmissionConfiguration");
                nd_json_string(&out, "kubeConfigFile", settings->kubeconfig);
                nd_json_close(&out, '}');
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        end(&out);
}

/* The name by which an API server looks for the user: a service's, or host and port of a URL. */
static char *server_name(const struct guard_install_settings *settings) {
        static const char scheme[] = "https://";
        const char *host;

        if (!settings->url)
                return nd_format("%s.%s.svc", settings->service, settings->namespace);
        host = nd_has_prefix(settings->url, scheme) ? settings->url + strlen(scheme) : settings->url;
        return nd_strndup(host, strcspn(host, "/"));
}

void guard_manifest_write_kubeconfig(const struct guard_install_settings *settings, struct nd_text *text) {
        nd_autofree char *name = server_name(settings);
        struct nd_json_out out;

        begin(&out, text, "v1", "Config");
        nd_json_open(&out, "users", '[');
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "name", name);
        nd_json_open(&out, "user", '{');
        nd_json_string(&out, "client-certificate", settings->client_certificate);
        nd_json_string(&out, "client-key", settings->client_key);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        end(&out);
}

/* "10.0.0.1/32,10.0.0.2/32" */
static void write_networks(struct nd_json_out *out, const char *networks) {
        for (const char *at = networks; *at; at += strspn(at, ",")) {
                size_t length = strcspn(at, ",");
                nd_autofree char *network = nd_strndup(at, length < NETWORK_LENGTH ? length : NETWORK_LENGTH);

                if (length == 0)
                        continue;
                nd_json_open(out, nullptr, '{');
                nd_json_open(out, "ipBlock", '{');
                nd_json_string(out, "cidr", network);
                nd_json_close(out, '}');
                nd_json_close(out, '}');
                at += length;
        }
}

void guard_manifest_write_network(const struct guard_install_settings *settings, struct nd_text *text) {
        struct nd_json_out out;

        begin(&out, text, "networking.k8s.io/v1", "NetworkPolicy");
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "name", "nodens-guard");
        nd_json_string(&out, "namespace", settings->namespace);
        nd_json_close(&out, '}');
        nd_json_open(&out, "spec", '{');
        nd_json_open(&out, "podSelector", '{');
        nd_json_open(&out, "matchLabels", '{');
        nd_json_string(&out, "app.kubernetes.io/name", "nodens-guard");
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_open(&out, "policyTypes", '[');
        nd_json_string(&out, nullptr, "Ingress");
        nd_json_close(&out, ']');
        nd_json_open(&out, "ingress", '[');
        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "from", '[');
        write_networks(&out, settings->api_servers);
        nd_json_close(&out, ']');
        nd_json_open(&out, "ports", '[');
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "protocol", "TCP");
        nd_json_number(&out, "port", settings->port);
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        end(&out);
}
