/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/token.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "rootless/components/control-plane.h"
#include "rootless/plane/certificate.h"
#include "rootless/plane/cluster-info.h"
#include "rootless/plane/directory.h"
#include "rootless/plane/objects.h"

#define SECRETS "/api/v1/namespaces/kube-system/secrets"
#define PREFIX "bootstrap-token-"
#define TYPE "bootstrap.kubernetes.io/token"

enum {
        TTL_S = 60 * 60,
        TTL_CEILING_S = 7 * 24 * 60 * 60,
        LIST_BYTES = 4 << 20,
};

static constexpr uint64_t signature_timeout_us = 60 * ND_SECOND_US;
static constexpr uint64_t signature_interval_us = 100 * ND_MS_US;

static struct nd_error *open_client(const struct rootless_token_settings *settings, struct rootless_plane_client *ret) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autofree char *path = nd_format("%s/" CONTROL_PLANE_ADMIN, settings->directory);
        nd_autoclose int fd = -EBADF;

        nd_try(nd_error_wrap(rootless_plane_open(settings->directory, false, &fd), "node '%s' has no control plane",
                             settings->name));
        nd_try(nd_kubeconfig_load(path, nullptr, &config));
        return rootless_plane_client_open(&config, ret);
}

/* Letters and digits without a bias: a byte that would have one is drawn again. */
static struct nd_error *make_token(char token[static TOKEN_TEXT]) {
        static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        enum { LETTERS = sizeof alphabet - 1, FAIR = 256 / LETTERS * LETTERS };

        for (size_t i = 0; i < TOKEN_TEXT - 1;) {
                unsigned char byte;

                if (gnutls_rnd(GNUTLS_RND_KEY, &byte, 1) < 0)
                        return nd_error_new(ND_INTERNAL, 0, "make a random token");
                if (byte < FAIR)
                        token[i++] = alphabet[byte % LETTERS];
        }
        token[TOKEN_ID] = '.';
        token[TOKEN_TEXT - 1] = '\0';
        return nullptr;
}

static void add_object(struct nd_text *text, const char *token, const char *expiration) {
        struct nd_json_out out = {.text = text};
        nd_autofree char *name = nd_format(PREFIX "%.*s", TOKEN_ID, token), *id = nd_strndup(token, TOKEN_ID);

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "v1");
        nd_json_string(&out, "kind", "Secret");
        nd_json_string(&out, "type", TYPE);
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "name", name);
        nd_json_string(&out, "namespace", "kube-system");
        nd_json_close(&out, '}');
        nd_json_open(&out, "stringData", '{');
        nd_json_string(&out, "description", "nodens-rootless token create");
        nd_json_string(&out, "token-id", id);
        nd_json_string(&out, "token-secret", token + TOKEN_ID + 1);
        nd_json_string(&out, "expiration", expiration);
        nd_json_string(&out, "usage-bootstrap-authentication", "true");
        nd_json_string(&out, "usage-bootstrap-signing", "true");
        nd_json_string(&out, "auth-extra-groups", PLANE_TOKEN_GROUP);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static struct nd_error *send_token(struct rootless_plane_client *client, const char *token, uint32_t ttl) {
        time_t end = time(nullptr) + (ttl ? ttl : TTL_S);
        nd_autotext struct nd_text body = ND_TEXT(4096);
        char expiration[ND_CLOCK_TEXT];
        struct nd_error *error;

        add_object(&body, token, nd_clock_text(end, expiration));
        error = rootless_plane_send(
                client, &(struct rootless_plane_call) {.method = "POST", .path = SECRETS, .body = nd_text_get(&body)},
                nullptr);
        explicit_bzero(body.bytes, body.length);
        return error;
}

/* The controller manager signs cluster-info with a new token a moment later; until then no host can
 * join with it. */
static struct nd_error *wait_for_signature(struct rootless_plane_client *client, const char *token) {
        nd_autofree char *key = nd_format("\"jws-kubeconfig-%.*s\"", TOKEN_ID, token);
        uint64_t end = nd_clock_us() + signature_timeout_us;

        while (nd_clock_us() < end) {
                nd_autofree char *body = nullptr;

                nd_try(rootless_plane_send(
                        client, &(struct rootless_plane_call) {.path = PLANE_CLUSTER_INFO, .ceiling = CLUSTER_INFO_BYTES},
                        &body));
                if (strstr(body, key))
                        return nullptr;
                (void) usleep((useconds_t) signature_interval_us);
        }
        return nd_error_new(ND_DEADLINE, 0, "the controller manager does not sign the token; does it run?");
}

/* The command for other hosts. */
static struct nd_error *print_command(int fd, const char *token) {
        nd_cleanup(rootless_certificate_done) struct rootless_certificate ca = {};
        nd_autofree char *text = nullptr, *server = nullptr;
        char hash[CERTIFICATE_HASH_TEXT];

        nd_try(rootless_plane_read(fd, "ca.crt", &text));
        nd_try(rootless_plane_read(fd, PLANE_SERVER, &server));
        if (!text || !server)
                return nd_error_new(ND_NOT_FOUND, 0, "the control plane has not been started");
        nd_try(rootless_certificate_parse(text, &ca.certificate));
        nd_try(rootless_certificate_hash(ca.certificate, hash));
        printf("nodens-rootless up --bootstrap %s --server %s --ca-cert-hash %s\n", token, server, hash);
        if (nd_has_prefix(server, "https://127."))
                (void) fprintf(stderr, "nodens-rootless: warning: the API server is published on this host's loopback only; "
                                       "start the node with --api-port 0.0.0.0:" CONTROL_PLANE_PORT " for other hosts\n");
        return nullptr;
}

struct nd_error *rootless_token_create(const struct rootless_token_settings *settings) {
        nd_cleanup(rootless_plane_client_done) struct rootless_plane_client client = {};
        nd_autoclose int fd = -EBADF;
        char token[TOKEN_TEXT] = "";
        struct nd_error *error;

        if (settings->ttl > TTL_CEILING_S)
                return nd_error_new(ND_INVALID, 0, "invalid --ttl %u: must be at most %d seconds", settings->ttl,
                                    TTL_CEILING_S);
        nd_try(open_client(settings, &client));
        nd_try(rootless_plane_open(settings->directory, false, &fd));
        nd_try(make_token(token));
        error = send_token(&client, token, settings->ttl);
        if (!error)
                error = wait_for_signature(&client, token);
        if (!error)
                error = print_command(fd, token);
        explicit_bzero(token, sizeof token);
        return error;
}

/* ---- list and delete ---- */

/* A member of a Secret's data; "" if there is none. The caller frees it. */
static char *member(yyjson_val *secret, const char *key) {
        const char *data = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(secret, "data"), key));
        char *value = nullptr;

        if (data)
                nd_ignore(nd_base64_parse(data, &value)); /* not a token of ours then */
        return value ? value : nd_strdup("");
}

struct nd_error *rootless_token_list(const struct rootless_token_settings *settings) {
        nd_cleanup(rootless_plane_client_done) struct rootless_plane_client client = {};
        nd_autojson yyjson_doc *doc = nullptr;
        char *body = nullptr;
        struct nd_error *error;
        yyjson_arr_iter each;
        yyjson_val *secret;

        nd_try(open_client(settings, &client));
        nd_try(rootless_plane_send(&client,
                                   &(struct rootless_plane_call) {.path = SECRETS "?fieldSelector=type%3D" TYPE "&limit=1000",
                                                                  .ceiling = LIST_BYTES},
                                   &body));
        error = nd_json_parse(body, strlen(body), LIST_BYTES, &doc);
        rootless_plane_wipe(body);
        nd_try(error);
        printf("%-8s %-22s %s\n", "ID", "EXPIRES", "GROUPS");
        each = yyjson_arr_iter_with(yyjson_obj_get(yyjson_doc_get_root(doc), "items"));
        while ((secret = yyjson_arr_iter_next(&each))) {
                nd_autofree char *id = member(secret, "token-id"), *expiration = member(secret, "expiration"),
                                 *groups = member(secret, "auth-extra-groups");

                printf("%-8s %-22s %s\n", id, expiration, groups);
        }
        return nullptr;
}

struct nd_error *rootless_token_delete(const struct rootless_token_settings *settings, const char *id) {
        nd_cleanup(rootless_plane_client_done) struct rootless_plane_client client = {};
        nd_autofree char *path = nd_format(SECRETS "/" PREFIX "%s", id);

        if (strlen(id) != TOKEN_ID || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") != TOKEN_ID)
                return nd_error_new(ND_INVALID, 0, "invalid ID of a token: must be 6 lower-case letters and digits");
        nd_try(open_client(settings, &client));
        return rootless_plane_send(&client, &(struct rootless_plane_call) {.method = "DELETE", .path = path}, nullptr);
}
