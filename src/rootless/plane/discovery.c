/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.c - see discovery.h
 *
 * With a hash, the first request does not check the server's certificate: its reply is accepted
 * only with a signature of the token and an authority of that hash. The second request checks the
 * certificate with this authority and must get the same reply. The token is sent only to a server
 * whose certificate was checked. */
#include "rootless/plane/discovery.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "rootless/plane/client.h"
#include "rootless/plane/cluster-info.h"
#include "rootless/plane/directory.h"
#include "rootless/plane/kubeconfig.h"
#include "rootless/plane/objects.h"
#include "sys/file.h"

#define ACCOUNT_TOKEN "/api/v1/namespaces/" PLANE_NAMESPACE "/serviceaccounts/" PLANE_CONTROLLER_ACCOUNT "/token"

enum {
        REPLY_BYTES = 64 * 1024,
        ACCOUNT_TOKEN_S = 365 * 24 * 60 * 60,
};

struct discovery {
        const struct rootless_discovery_settings *settings;
        char token[TOKEN_TEXT];
        char *ca;         /* PEM of the authority that is trusted */
        char *controller; /* token of the service account; nullptr = none */
};

static void discovery_done(struct discovery *d) {
        explicit_bzero(d->token, sizeof d->token);
        free(d->ca);
        rootless_plane_wipe(d->controller);
}

static struct nd_error *read_token(char token[static TOKEN_TEXT]) {
        char line[TOKEN_TEXT + 2] = "";
        bool read = fgets(line, sizeof line, stdin) != nullptr;

        line[strcspn(line, "\r\n")] = '\0';
        if (read && rootless_token_valid(line))
                memcpy(token, line, strlen(line) + 1);
        explicit_bzero(line, sizeof line);
        return *token ? nullptr
                      : nd_error_new(
                                ND_INVALID, 0,
                                "invalid bootstrap token: must be 6 and 16 lower-case letters and digits, joined by a dot");
}

/* ---- requests ---- */

static struct nd_error *send_request(const struct discovery *d, bool authenticated, const struct rootless_plane_call *call,
                                     char **ret) {
        nd_cleanup(rootless_plane_client_done) struct rootless_plane_client client = {};
        struct nd_kubeconfig config = {.server = (char *) d->settings->server,
                                       .ca = d->ca,
                                       .insecure = !d->ca,
                                       .token = authenticated ? (char *) d->token : nullptr};

        nd_try(rootless_plane_client_open(&config, &client));
        return rootless_plane_send(&client, call, ret);
}

static struct nd_error *fetch(const struct discovery *d, struct rootless_cluster_info *ret) {
        nd_autofree char *body = nullptr;

        nd_try(nd_error_wrap(
                send_request(d, false,
                             &(struct rootless_plane_call) {.path = PLANE_CLUSTER_INFO, .ceiling = CLUSTER_INFO_BYTES}, &body),
                "API server '%s'", d->settings->server));
        return rootless_cluster_info_parse(body, strlen(body), d->token, ret);
}

static struct nd_error *find_authority(struct discovery *d) {
        nd_cleanup(rootless_cluster_info_done) struct rootless_cluster_info first = {}, second = {};
        nd_autofree char *given = nullptr;

        if (d->settings->ca) {
                nd_try(nd_error_wrap(nd_file_read_any(d->settings->ca, CLUSTER_INFO_BYTES, &d->ca, nullptr), "--ca '%s'",
                                     d->settings->ca));
                return fetch(d, &second);
        }
        nd_try(fetch(d, &first));
        nd_try(rootless_cluster_info_pin(first.ca, d->settings->ca_cert_hash, &d->ca));
        nd_try(fetch(d, &second));
        if (!nd_streq(first.kubeconfig, second.kubeconfig))
                return nd_error_new(ND_UNAUTHENTICATED, 0, "ConfigMap cluster-info has changed between two requests");
        return nullptr;
}

/* kube-proxy uses the kubelet's certificate; the controller needs rights that no node may have. */
static struct nd_error *request_controller(struct discovery *d) {
        nd_autofree char *body = nd_format("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                                           "\"spec\":{\"expirationSeconds\":%d}}",
                                           ACCOUNT_TOKEN_S);
        nd_autojson yyjson_doc *doc = nullptr;
        const char *token;
        char *reply = nullptr;

        nd_try(send_request(
                d, true,
                &(struct rootless_plane_call) {.method = "POST", .path = ACCOUNT_TOKEN, .body = body, .ceiling = REPLY_BYTES},
                &reply));
        nd_ignore(nd_json_parse(reply, strlen(reply), REPLY_BYTES, &doc)); /* no token then */
        token = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "token"));
        d->controller = token ? nd_strdup(token) : nullptr;
        rootless_plane_wipe(reply);
        return d->controller ? nullptr : nd_error_new(ND_INVALID, 0, "the reply has no token");
}

/* ---- the result ---- */

static struct nd_error *write_result(const struct discovery *d) {
        struct rootless_plane_context contexts[] = {
                {.name = "bootstrap", .server = d->settings->server, .ca = d->ca, .token = d->token},
                {.name = "controller", .server = d->settings->server, .ca = d->ca, .token = d->controller}};
        nd_autofree char *directory = nd_strdup(d->settings->output);
        char *slash = strrchr(directory, '/'), *text;
        nd_autoclose int fd = -EBADF;
        struct nd_error *error;

        if (!slash)
                return nd_error_new(ND_INVALID, 0, "'%s' is not an absolute path", d->settings->output);
        *slash = '\0';
        nd_try(rootless_plane_open(directory, true, &fd));
        text = rootless_plane_kubeconfig(contexts, d->controller ? 2 : 1);
        error = rootless_plane_write(fd, slash + 1, text);
        rootless_plane_wipe(text);
        return error;
}

struct nd_error *rootless_discover(const struct rootless_discovery_settings *settings) {
        nd_cleanup(discovery_done) struct discovery d = {.settings = settings};
        nd_autoerror struct nd_error *refused = nullptr;

        if (!nd_has_prefix(settings->server, "https://"))
                return nd_error_new(ND_INVALID, 0, "invalid --server '%s': must be an https:// URL", settings->server);
        if (!settings->ca == !settings->ca_cert_hash)
                return nd_error_new(ND_INVALID, 0, "--bootstrap needs either --ca-cert-hash or --ca");
        if (settings->ca_cert_hash && !rootless_hash_valid(settings->ca_cert_hash))
                return nd_error_new(ND_INVALID, 0, "invalid --ca-cert-hash '%s': must be sha256: and 64 hexadecimal digits",
                                    settings->ca_cert_hash);
        nd_try(read_token(d.token));
        nd_try(find_authority(&d));
        refused = request_controller(&d);
        if (refused)
                (void) fprintf(stderr,
                               "nodens-rootless: warning: no credential for the controller, so ports of Services are not "
                               "published: %s\n",
                               nd_error_text(refused));
        return write_result(&d);
}
