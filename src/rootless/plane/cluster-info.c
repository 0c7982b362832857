/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/cluster-info.h"

#include <ctype.h>
#include <gnutls/crypto.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/yaml.h"
#include "rootless/plane/certificate.h"

#define PREFIX "sha256:"

enum {
        MAC_BYTES = 32,
        HEADER_BYTES = 1024,
        CERTIFICATES_CEILING = 16,
        HASH_DIGITS = 64,
};

bool rootless_token_valid(const char *token) {
        if (strlen(token) != TOKEN_TEXT - 1 || token[TOKEN_ID] != '.')
                return false;
        for (size_t i = 0; i < TOKEN_TEXT - 1; i++)
                if (i != TOKEN_ID && !isdigit((unsigned char) token[i]) && !(token[i] >= 'a' && token[i] <= 'z'))
                        return false;
        return true;
}

bool rootless_hash_valid(const char *hash) {
        return nd_has_prefix(hash, PREFIX) && strlen(hash) == strlen(PREFIX) + HASH_DIGITS &&
               strspn(hash + strlen(PREFIX), "0123456789abcdef") == HASH_DIGITS;
}

void rootless_cluster_info_done(struct rootless_cluster_info *info) {
        free(info->kubeconfig);
        free(info->ca);
        *info = (struct rootless_cluster_info) {};
}

/* ---- the signature ---- */

static void replace(char *text, char from, char to) {
        for (char *c = strchr(text, from); c; c = strchr(c, from))
                *c = to;
}

/* The alphabet for URLs, without padding. */
static char *encode(const char *bytes, size_t length) {
        char *text = nd_base64(bytes, length);

        replace(text, '+', '-');
        replace(text, '/', '_');
        text[strcspn(text, "=")] = '\0';
        return text;
}

/* The header is signed, too; "none" and other algorithms are not accepted. */
static struct nd_error *check_header(const char *encoded, size_t length, const char *token) {
        nd_autofree char *text = nd_format("%.*s%s", (int) length, encoded, &"==="[(length + 3) % 4]), *header = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        size_t size;
        yyjson_val *top;

        replace(text, '-', '+');
        replace(text, '_', '/');
        nd_try(nd_base64_decode(text, strlen(text), &header, &size));
        nd_try(nd_json_parse(header, size, HEADER_BYTES, &doc));
        top = yyjson_doc_get_root(doc);
        if (!yyjson_equals_str(yyjson_obj_get(top, "alg"), "HS256") ||
            !yyjson_equals_strn(yyjson_obj_get(top, "kid"), token, TOKEN_ID))
                return nd_error_new(ND_UNAUTHENTICATED, 0, "it is not a signature of this token");
        return nullptr;
}

static bool equal(const char *a, const char *b) {
        size_t length = strlen(a);

        return length == strlen(b) && gnutls_memcmp(a, b, length) == 0;
}

/* HEADER..SIGNATURE */
static struct nd_error *check_signature(const char *signature, const char *payload, const char *token) {
        const char *dot = strchr(signature, '.');
        nd_autofree char *encoded = encode(payload, strlen(payload)), *input = nullptr, *expected = nullptr;
        unsigned char mac[MAC_BYTES];

        if (!dot || dot[1] != '.' || dot - signature > HEADER_BYTES)
                return nd_error_new(ND_UNAUTHENTICATED, 0, "it has another form");
        nd_try(check_header(signature, (size_t) (dot - signature), token));
        input = nd_format("%.*s.%s", (int) (dot - signature), signature, encoded);
        if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, token + TOKEN_ID + 1, TOKEN_SECRET, input, strlen(input), mac) < 0)
                return nd_error_new(ND_INTERNAL, 0, "compute a signature");
        expected = encode((const char *) mac, sizeof mac);
        if (!equal(expected, dot + 2))
                return nd_error_new(ND_UNAUTHENTICATED, 0, "the server does not know the token");
        return nullptr;
}

/* ---- the object ---- */

/* A kubeconfig with one cluster, and perhaps without contexts. */
static struct nd_error *take_ca(const char *kubeconfig, char **ret) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *clusters, *cluster;
        const char *data;

        nd_try(nd_yaml_parse(kubeconfig, strlen(kubeconfig), CLUSTER_INFO_BYTES, &doc));
        clusters = yyjson_obj_get(yyjson_doc_get_root(doc), "clusters");
        cluster = yyjson_obj_get(yyjson_arr_get_first(clusters), "cluster");
        data = yyjson_get_str(yyjson_obj_get(cluster, "certificate-authority-data"));
        if (yyjson_arr_size(clusters) != 1 || !data)
                return nd_error_new(ND_INVALID, 0, "its kubeconfig does not have one cluster with an authority");
        return nd_base64_parse(data, ret);
}

struct nd_error *rootless_cluster_info_parse(const char *object, size_t length, const char *token,
                                             struct rootless_cluster_info *ret) {
        nd_cleanup(rootless_cluster_info_done) struct rootless_cluster_info info = {};
        nd_autofree char *key = nd_format("jws-kubeconfig-%.*s", TOKEN_ID, token);
        nd_autojson yyjson_doc *doc = nullptr;
        const char *kubeconfig, *signature;
        yyjson_val *data, *value;

        nd_try(nd_error_wrap(nd_json_parse(object, length, CLUSTER_INFO_BYTES, &doc), "ConfigMap cluster-info"));
        data = yyjson_obj_get(yyjson_doc_get_root(doc), "data");
        value = yyjson_obj_get(data, "kubeconfig");
        kubeconfig = yyjson_get_str(value);
        signature = yyjson_get_str(yyjson_obj_get(data, key));
        if (!kubeconfig || strlen(kubeconfig) != yyjson_get_len(value))
                return nd_error_new(ND_INVALID, 0, "ConfigMap cluster-info has no kubeconfig");
        if (!signature)
                return nd_error_new(ND_UNAUTHENTICATED, 0,
                                    "ConfigMap cluster-info has no signature of token '%.*s': it has expired or was deleted",
                                    TOKEN_ID, token);
        nd_try(nd_error_wrap(check_signature(signature, kubeconfig, token), "signature of ConfigMap cluster-info"));
        info.kubeconfig = nd_strdup(kubeconfig);
        nd_try(nd_error_wrap(take_ca(kubeconfig, &info.ca), "ConfigMap cluster-info"));
        *ret = nd_take(info, (struct rootless_cluster_info) {});
        return nullptr;
}

/* ---- the authority ---- */

static struct nd_error *find_pinned(gnutls_x509_crt_t *all, unsigned count, const char *hash, char **ret) {
        char found[CERTIFICATE_HASH_TEXT];

        for (unsigned i = 0; i < count; i++) {
                nd_try(rootless_certificate_hash(all[i], found));
                if (nd_streq(found, hash))
                        return rootless_certificate_format(all[i], ret);
        }
        return nd_error_new(ND_UNAUTHENTICATED, 0,
                            "the cluster's authority does not have the public key of --ca-cert-hash: this is another cluster");
}

struct nd_error *rootless_cluster_info_pin(const char *bundle, const char *hash, char **ret) {
        gnutls_datum_t text = {.data = (unsigned char *) bundle, .size = (unsigned) strlen(bundle)};
        gnutls_x509_crt_t all[CERTIFICATES_CEILING];
        unsigned count = CERTIFICATES_CEILING;
        struct nd_error *error;
        int r = gnutls_x509_crt_list_import(all, &count, &text, GNUTLS_X509_FMT_PEM,
                                            GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);

        if (r < 0)
                return nd_error_new(ND_INVALID, 0, "the cluster's authority is not a certificate: %s", gnutls_strerror(r));
        error = find_pinned(all, (unsigned) r, hash, ret);
        for (int i = 0; i < r; i++)
                gnutls_x509_crt_deinit(all[i]);
        return error;
}
