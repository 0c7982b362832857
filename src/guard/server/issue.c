/* SPDX-License-Identifier: Apache-2.0 */
/* issue.c - see issue.h
 *
 * API servers verify the guard with the authority's certificate (caBundle), which stays when the
 * server's is renewed. So webhook configurations need no change then, and no moment exists in which
 * one side has the new certificate and the other does not. */
#include "guard/server/issue.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
        SERIAL_BYTES = 16,
        KEY_ID_BYTES = 64,
        NAME_BYTES = 253,   /* of a DNS name */
        CLOCK_SLACK = 3600, /* seconds by which an API server's clock may be behind */
};

static constexpr time_t day = 24 * 3600;

void guard_issued_done(struct guard_issued *issued) {
        if (issued->key)
                explicit_bzero(issued->key, strlen(issued->key));
        free(issued->certificate);
        free(issued->key);
        *issued = (struct guard_issued) {};
}

/* A certificate and its key, parsed or in the making. */
struct pair {
        gnutls_x509_crt_t certificate;
        gnutls_x509_privkey_t key;
};

static void pair_init(struct pair *pair) {
        if (gnutls_x509_crt_init(&pair->certificate) < 0 || gnutls_x509_privkey_init(&pair->key) < 0)
                abort(); /* out of memory, as everywhere */
}

static void pair_done(struct pair *pair) {
        gnutls_x509_crt_deinit(pair->certificate);
        gnutls_x509_privkey_deinit(pair->key);
}

static struct nd_error *gnutls_error(int r, const char *what) {
        return r < 0 ? nd_error_new(ND_INTERNAL, 0, "%s: %s", what, gnutls_strerror(r)) : nullptr;
}

/* ---- PEM ---- */

static char *text_of(gnutls_datum_t *datum) {
        char *text = nd_strndup((const char *) datum->data, datum->size);

        explicit_bzero(datum->data, datum->size);
        gnutls_free(datum->data);
        return text;
}

static struct nd_error *export_pair(const struct pair *pair, struct guard_issued *ret) {
        nd_cleanup(guard_issued_done) struct guard_issued issued = {};
        gnutls_datum_t out = {};

        nd_try(gnutls_error(gnutls_x509_crt_export2(pair->certificate, GNUTLS_X509_FMT_PEM, &out), "write the certificate"));
        issued.certificate = text_of(&out);
        nd_try(gnutls_error(
                gnutls_x509_privkey_export2_pkcs8(pair->key, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN, &out),
                "write the key"));
        issued.key = text_of(&out);
        *ret = nd_take(issued, (struct guard_issued) {});
        return nullptr;
}

static struct nd_error *import_pair(const struct guard_issued *issued, struct pair *pair) {
        gnutls_datum_t certificate = {.data = (unsigned char *) issued->certificate,
                                      .size = (unsigned) strlen(issued->certificate)},
                       key = {.data = (unsigned char *) issued->key, .size = (unsigned) strlen(issued->key)};

        nd_try(gnutls_error(gnutls_x509_crt_import(pair->certificate, &certificate, GNUTLS_X509_FMT_PEM),
                            "read the authority's certificate"));
        return gnutls_error(gnutls_x509_privkey_import2(pair->key, &key, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN),
                            "read the authority's key");
}

/* ---- contents ---- */

static struct nd_error *set_serial(gnutls_x509_crt_t certificate) {
        unsigned char serial[SERIAL_BYTES];

        if (getrandom(serial, sizeof serial, 0) != sizeof serial)
                return nd_error_new(ND_INTERNAL, errno, "get random bytes for a serial number");
        serial[0] = (serial[0] & 0x7f) | 0x40; /* a positive number, without leading zeros */
        return gnutls_error(gnutls_x509_crt_set_serial(certificate, serial, sizeof serial), "set the serial number");
}

static struct nd_error *set_key_ids(struct pair *pair, const struct pair *authority) {
        unsigned char id[KEY_ID_BYTES];
        size_t size = sizeof id;

        nd_try(gnutls_error(gnutls_x509_crt_get_key_id(pair->certificate, GNUTLS_KEYID_USE_SHA256, id, &size),
                            "identify the key"));
        nd_try(gnutls_error(gnutls_x509_crt_set_subject_key_id(pair->certificate, id, size), "set the key's identifier"));
        size = sizeof id;
        nd_try(gnutls_error(gnutls_x509_crt_get_subject_key_id(authority->certificate, id, &size, nullptr),
                            "the authority's certificate has no key identifier"));
        return gnutls_error(gnutls_x509_crt_set_authority_key_id(pair->certificate, id, size),
                            "set the authority's identifier");
}

/* Name, key, serial number and times. */
static struct nd_error *begin(struct pair *pair, const char *name, time_t until) {
        time_t now = time(nullptr);
        int r = gnutls_x509_privkey_generate2(pair->key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0,
                                              nullptr, 0);

        if (r >= 0)
                r = gnutls_x509_crt_set_version(pair->certificate, 3);
        if (r >= 0)
                r = gnutls_x509_crt_set_key(pair->certificate, pair->key);
        if (r >= 0)
                r = gnutls_x509_crt_set_dn_by_oid(pair->certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                  (unsigned) strlen(name));
        if (r >= 0)
                r = gnutls_x509_crt_set_activation_time(pair->certificate, now - CLOCK_SLACK);
        if (r >= 0)
                r = gnutls_x509_crt_set_expiration_time(pair->certificate, until);
        nd_try(gnutls_error(r, "make a certificate"));
        return set_serial(pair->certificate);
}

static struct nd_error *sign(struct pair *pair, const struct pair *authority) {
        nd_try(set_key_ids(pair, authority));
        return gnutls_error(
                gnutls_x509_crt_sign2(pair->certificate, authority->certificate, authority->key, GNUTLS_DIG_SHA256, 0),
                "sign the certificate");
}

static bool is_dns_name(const char *name) {
        const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
        size_t length = strlen(name);

        return length > 0 && length <= NAME_BYTES && strspn(name, allowed) == length && *name != '.' && *name != '-' &&
               !strstr(name, "..");
}

static struct nd_error *add_name(gnutls_x509_crt_t certificate, const char *name) {
        struct in6_addr address;
        unsigned size = 0;

        if (inet_pton(AF_INET, name, &address) == 1)
                size = sizeof(struct in_addr);
        else if (inet_pton(AF_INET6, name, &address) == 1)
                size = sizeof address;
        else if (!is_dns_name(name))
                return nd_error_new(ND_INVALID, 0,
                                    "'%s' is neither an IP address nor a DNS name (without a scheme and without a port)",
                                    name);
        return gnutls_error(
                gnutls_x509_crt_set_subject_alt_name(certificate, size > 0 ? GNUTLS_SAN_IPADDRESS : GNUTLS_SAN_DNSNAME,
                                                     size > 0 ? (const void *) &address : name,
                                                     size > 0 ? size : (unsigned) strlen(name), GNUTLS_FSAN_APPEND),
                "add a name");
}

/* ---- the two certificates ---- */

struct nd_error *guard_issue_authority(unsigned days, struct guard_issued *ret) {
        nd_cleanup(pair_done) struct pair pair = {};
        int r;

        pair_init(&pair);
        nd_try(begin(&pair, "nodens-guard authority", time(nullptr) + day * days));
        /* no authorities below it */
        r = gnutls_x509_crt_set_basic_constraints(pair.certificate, 1, 0);
        if (r >= 0)
                r = gnutls_x509_crt_set_key_usage(pair.certificate, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
        nd_try(gnutls_error(r, "make a certificate"));
        {
                unsigned char id[KEY_ID_BYTES];
                size_t size = sizeof id;

                r = gnutls_x509_crt_get_key_id(pair.certificate, GNUTLS_KEYID_USE_SHA256, id, &size);
                if (r >= 0)
                        r = gnutls_x509_crt_set_subject_key_id(pair.certificate, id, size);
                nd_try(gnutls_error(r, "set the key's identifier"));
        }
        nd_try(gnutls_error(gnutls_x509_crt_sign2(pair.certificate, pair.certificate, pair.key, GNUTLS_DIG_SHA256, 0),
                            "sign the certificate"));
        return export_pair(&pair, ret);
}

static struct nd_error *make_server(struct pair *pair, const struct pair *authority, const struct nd_strings *names,
                                    time_t until) {
        int r;

        nd_try(begin(pair, "nodens-guard", until));
        for (size_t i = 0; i < names->count; i++)
                nd_try(add_name(pair->certificate, names->items[i]));
        r = gnutls_x509_crt_set_basic_constraints(pair->certificate, 0, -1);
        if (r >= 0)
                r = gnutls_x509_crt_set_key_usage(pair->certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
        if (r >= 0)
                r = gnutls_x509_crt_set_key_purpose_oid(pair->certificate, GNUTLS_KP_TLS_WWW_SERVER, 0);
        nd_try(gnutls_error(r, "make a certificate"));
        return sign(pair, authority);
}

struct nd_error *guard_issue_server(const struct guard_issued *authority_text, const struct nd_strings *names, unsigned days,
                                    struct guard_issued *ret) {
        nd_cleanup(pair_done) struct pair authority = {}, pair = {};
        time_t until = time(nullptr) + day * days, latest;

        pair_init(&authority);
        pair_init(&pair);
        nd_try(import_pair(authority_text, &authority));
        latest = gnutls_x509_crt_get_expiration_time(authority.certificate);
        if (latest <= time(nullptr))
                return nd_error_new(ND_INVALID, 0,
                                    "the authority has expired; remove its certificate and key to get a new one, and "
                                    "apply `nodens-guard manifest webhooks` again");
        nd_try(make_server(&pair, &authority, names, until < latest ? until : latest));
        return export_pair(&pair, ret);
}
