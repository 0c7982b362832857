/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/certificate.h"

#include <arpa/inet.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
        SERIAL_BYTES = 16,
        HASH_BYTES = 32,
        DN_BYTES = 512,
        CLOCK_SKEW_S = 300, /* of hosts that join */
};

static struct nd_error *fault(int r, const char *what) {
        return nd_error_new(ND_INTERNAL, 0, "%s: %s", what, gnutls_strerror(r));
}

void rootless_certificate_done(struct rootless_certificate *c) {
        if (c->certificate)
                gnutls_x509_crt_deinit(c->certificate);
        if (c->key)
                gnutls_x509_privkey_deinit(c->key);
        *c = (struct rootless_certificate) {};
}

/* ---- PEM ---- */

static gnutls_datum_t datum_of(const char *text) {
        return (gnutls_datum_t) {.data = (unsigned char *) text, .size = (unsigned) strlen(text)};
}

static char *take_datum(gnutls_datum_t *datum) {
        char *text = nd_strndup((const char *) datum->data, datum->size);

        explicit_bzero(datum->data, datum->size);
        gnutls_free(datum->data);
        return text;
}

struct nd_error *rootless_certificate_key_make(gnutls_x509_privkey_t *ret) {
        gnutls_x509_privkey_t key = nullptr;
        int r = gnutls_x509_privkey_init(&key);

        if (r >= 0)
                r = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
        if (r < 0) {
                gnutls_x509_privkey_deinit(key);
                return fault(r, "make a key");
        }
        *ret = key;
        return nullptr;
}

struct nd_error *rootless_certificate_key_parse(const char *pem, gnutls_x509_privkey_t *ret) {
        gnutls_datum_t text = datum_of(pem);
        gnutls_x509_privkey_t key = nullptr;
        int r = gnutls_x509_privkey_init(&key);

        if (r >= 0)
                r = gnutls_x509_privkey_import2(key, &text, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN);
        if (r < 0) {
                gnutls_x509_privkey_deinit(key);
                return nd_error_new(ND_INVALID, 0, "not a key in PEM format: %s", gnutls_strerror(r));
        }
        *ret = key;
        return nullptr;
}

struct nd_error *rootless_certificate_key_format(gnutls_x509_privkey_t key, char **ret) {
        gnutls_datum_t text = {};
        int r = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN, &text);

        if (r < 0)
                return fault(r, "format a key");
        *ret = take_datum(&text);
        return nullptr;
}

struct nd_error *rootless_certificate_public_format(gnutls_x509_privkey_t key, char **ret) {
        gnutls_privkey_t private = nullptr;
        gnutls_pubkey_t public = nullptr;
        gnutls_datum_t text = {};
        int r = gnutls_privkey_init(&private);

        if (r >= 0)
                r = gnutls_pubkey_init(&public);
        if (r >= 0)
                r = gnutls_privkey_import_x509(private, key, 0);
        if (r >= 0)
                r = gnutls_pubkey_import_privkey(public, private, 0, 0);
        if (r >= 0)
                r = gnutls_pubkey_export2(public, GNUTLS_X509_FMT_PEM, &text);
        gnutls_pubkey_deinit(public);
        gnutls_privkey_deinit(private);
        if (r < 0)
                return fault(r, "format a public key");
        *ret = take_datum(&text);
        return nullptr;
}

struct nd_error *rootless_certificate_parse(const char *pem, gnutls_x509_crt_t *ret) {
        gnutls_datum_t text = datum_of(pem);
        gnutls_x509_crt_t certificate = nullptr;
        int r = gnutls_x509_crt_init(&certificate);

        if (r >= 0)
                r = gnutls_x509_crt_import(certificate, &text, GNUTLS_X509_FMT_PEM);
        if (r < 0) {
                gnutls_x509_crt_deinit(certificate);
                return nd_error_new(ND_INVALID, 0, "not a certificate in PEM format: %s", gnutls_strerror(r));
        }
        *ret = certificate;
        return nullptr;
}

struct nd_error *rootless_certificate_format(gnutls_x509_crt_t certificate, char **ret) {
        gnutls_datum_t text = {};
        int r = gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &text);

        if (r < 0)
                return fault(r, "format a certificate");
        *ret = take_datum(&text);
        return nullptr;
}

/* ---- a new certificate ---- */

static int add_name(gnutls_x509_crt_t certificate, const char *name) {
        unsigned char bytes[16];

        if (inet_pton(AF_INET, name, bytes) == 1)
                return gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, bytes, 4, GNUTLS_FSAN_APPEND);
        if (inet_pton(AF_INET6, name, bytes) == 1)
                return gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, bytes, 16, GNUTLS_FSAN_APPEND);
        return gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, name, (unsigned) strlen(name),
                                                    GNUTLS_FSAN_APPEND);
}

static int set_subject(gnutls_x509_crt_t certificate, const struct rootless_certificate_plan *plan) {
        int r = gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, plan->name,
                                              (unsigned) strlen(plan->name));

        if (r >= 0 && plan->organization)
                r = gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, plan->organization,
                                                  (unsigned) strlen(plan->organization));
        for (const char *const *name = plan->names; r >= 0 && name && *name; name++)
                r = add_name(certificate, *name);
        return r;
}

static int set_usage(gnutls_x509_crt_t certificate, const struct rootless_certificate_plan *plan) {
        int r = gnutls_x509_crt_set_basic_constraints(certificate, plan->authority, -1);

        if (r >= 0)
                r = gnutls_x509_crt_set_key_usage(certificate,
                                                  plan->authority ? GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_DIGITAL_SIGNATURE
                                                                  : GNUTLS_KEY_DIGITAL_SIGNATURE);
        if (r >= 0 && !plan->authority)
                r = gnutls_x509_crt_set_key_purpose_oid(certificate,
                                                        plan->server ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT, 0);
        return r;
}

static int set_serial(gnutls_x509_crt_t certificate) {
        unsigned char serial[SERIAL_BYTES];
        int r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);

        serial[0] = (serial[0] & 0x3f) | 0x40; /* positive, and of full length */
        return r < 0 ? r : gnutls_x509_crt_set_serial(certificate, serial, sizeof serial);
}

static int set_key(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key, gnutls_x509_privkey_t signer) {
        unsigned char id[HASH_BYTES];
        size_t size = sizeof id;
        int r = gnutls_x509_crt_set_key(certificate, key);

        if (r >= 0)
                r = gnutls_x509_privkey_get_key_id(key, 0, id, &size);
        if (r >= 0)
                r = gnutls_x509_crt_set_subject_key_id(certificate, id, size);
        size = sizeof id;
        if (r >= 0)
                r = gnutls_x509_privkey_get_key_id(signer, 0, id, &size);
        return r < 0 ? r : gnutls_x509_crt_set_authority_key_id(certificate, id, size);
}

static int fill(gnutls_x509_crt_t certificate, const struct rootless_certificate_plan *plan, gnutls_x509_privkey_t key,
                const struct rootless_certificate *issuer) {
        time_t now = time(nullptr);
        int r = gnutls_x509_crt_set_version(certificate, 3);

        if (r >= 0)
                r = set_serial(certificate);
        if (r >= 0)
                r = gnutls_x509_crt_set_activation_time(certificate, now - CLOCK_SKEW_S);
        if (r >= 0)
                r = gnutls_x509_crt_set_expiration_time(certificate, now + plan->seconds);
        if (r >= 0)
                r = set_key(certificate, key, issuer ? issuer->key : key);
        if (r >= 0)
                r = set_subject(certificate, plan);
        if (r >= 0)
                r = set_usage(certificate, plan);
        return r < 0 ? r
                     : gnutls_x509_crt_sign2(certificate, issuer ? issuer->certificate : certificate,
                                             issuer ? issuer->key : key, GNUTLS_DIG_SHA256, 0);
}

struct nd_error *rootless_certificate_sign(const struct rootless_certificate_plan *plan, gnutls_x509_privkey_t key,
                                           const struct rootless_certificate *issuer, gnutls_x509_crt_t *ret) {
        gnutls_x509_crt_t certificate = nullptr;
        int r = gnutls_x509_crt_init(&certificate);

        if (r >= 0)
                r = fill(certificate, plan, key, issuer);
        if (r < 0) {
                gnutls_x509_crt_deinit(certificate);
                return nd_error_wrap(fault(r, "make a certificate"), "'%s'", plan->name);
        }
        *ret = certificate;
        return nullptr;
}

/* ---- an existing certificate ---- */

static bool has_subject(gnutls_x509_crt_t certificate, const char *oid, const char *value) {
        char found[DN_BYTES];
        size_t size = sizeof found;
        int r = gnutls_x509_crt_get_dn_by_oid(certificate, oid, 0, 0, found, &size);

        return value ? r >= 0 && nd_streq(found, value) : r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
}

static bool has_key(const struct rootless_certificate *c) {
        unsigned char of_certificate[HASH_BYTES], of_key[HASH_BYTES];
        size_t size = sizeof of_certificate, key_size = sizeof of_key;

        return gnutls_x509_crt_get_key_id(c->certificate, 0, of_certificate, &size) >= 0 &&
               gnutls_x509_privkey_get_key_id(c->key, 0, of_key, &key_size) >= 0 && size == key_size &&
               memcmp(of_certificate, of_key, size) == 0;
}

static bool is_signed(const struct rootless_certificate *c, const struct rootless_certificate *issuer) {
        const struct rootless_certificate *signer = issuer ? issuer : c;
        unsigned status = 0;

        return gnutls_x509_crt_check_issuer(c->certificate, signer->certificate) &&
               gnutls_x509_crt_verify(c->certificate, &signer->certificate, 1, GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &status) >=
                       0 &&
               status == 0;
}

bool rootless_certificate_fits(const struct rootless_certificate_plan *plan, const struct rootless_certificate *c,
                               const struct rootless_certificate *issuer, time_t now) {
        for (const char *const *name = plan->names; name && *name; name++)
                if (!gnutls_x509_crt_check_hostname2(c->certificate, *name, GNUTLS_VERIFY_DO_NOT_ALLOW_WILDCARDS))
                        return false;
        return has_key(c) && is_signed(c, issuer) && has_subject(c->certificate, GNUTLS_OID_X520_COMMON_NAME, plan->name) &&
               has_subject(c->certificate, GNUTLS_OID_X520_ORGANIZATION_NAME, plan->organization) &&
               gnutls_x509_crt_get_activation_time(c->certificate) <= now &&
               gnutls_x509_crt_get_expiration_time(c->certificate) - now >= plan->seconds / 3;
}

struct nd_error *rootless_certificate_hash(gnutls_x509_crt_t certificate, char ret[static CERTIFICATE_HASH_TEXT]) {
        unsigned char hash[HASH_BYTES];
        gnutls_pubkey_t key = nullptr;
        gnutls_datum_t bytes = {};
        int r = gnutls_pubkey_init(&key);

        if (r >= 0)
                r = gnutls_pubkey_import_x509(key, certificate, 0);
        if (r >= 0)
                r = gnutls_pubkey_export2(key, GNUTLS_X509_FMT_DER, &bytes);
        if (r >= 0)
                r = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.data, bytes.size, hash);
        gnutls_free(bytes.data);
        gnutls_pubkey_deinit(key);
        if (r < 0)
                return fault(r, "hash the public key of a certificate");
        memcpy(ret, "sha256:", sizeof "sha256:");
        for (size_t i = 0; i < sizeof hash; i++)
                (void) snprintf(ret + strlen("sha256:") + 2 * i, 3, "%02x", hash[i]);
        return nullptr;
}
