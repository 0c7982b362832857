/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - X.509 certificates of a cluster, with ECDSA keys on P-256 */
#pragma once

#include <gnutls/x509.h>
#include <time.h>

#include "base/strings.h"

/* A certificate with its key. Owns both. */
struct rootless_certificate {
        gnutls_x509_crt_t certificate;
        gnutls_x509_privkey_t key;
};
void rootless_certificate_done(struct rootless_certificate *c);

struct rootless_certificate_plan {
        const char *name;         /* common name */
        const char *organization; /* nullptr = none; a group to the API server */
        const char *const *names; /* DNS names and addresses, ends with nullptr; nullptr = none */
        bool authority;
        bool server;    /* for servers, else for clients */
        time_t seconds; /* how long it is valid */
};

/* PEM. Keys are PKCS #8, without a password. The caller wipes and frees the text of a key. */
[[nodiscard]] struct nd_error *rootless_certificate_key_make(gnutls_x509_privkey_t *ret);
[[nodiscard]] struct nd_error *rootless_certificate_key_parse(const char *pem, gnutls_x509_privkey_t *ret);
[[nodiscard]] struct nd_error *rootless_certificate_key_format(gnutls_x509_privkey_t key, char **ret);
[[nodiscard]] struct nd_error *rootless_certificate_public_format(gnutls_x509_privkey_t key, char **ret);
[[nodiscard]] struct nd_error *rootless_certificate_parse(const char *pem, gnutls_x509_crt_t *ret);
[[nodiscard]] struct nd_error *rootless_certificate_format(gnutls_x509_crt_t certificate, char **ret);

/* Makes the certificate of a key. issuer nullptr: signed with the key itself. */
[[nodiscard]] struct nd_error *rootless_certificate_sign(const struct rootless_certificate_plan *plan,
                                                         gnutls_x509_privkey_t key, const struct rootless_certificate *issuer,
                                                         gnutls_x509_crt_t *ret);

/* Whether a certificate is that of the plan, of this key and issuer, and valid for a third of its
 * time at least. */
[[nodiscard]] bool rootless_certificate_fits(const struct rootless_certificate_plan *plan,
                                             const struct rootless_certificate *c, const struct rootless_certificate *issuer,
                                             time_t now);

/* "sha256:" and the hash of the public key, as of kubeadm's --discovery-token-ca-cert-hash. */
enum { CERTIFICATE_HASH_TEXT = 72 };
[[nodiscard]] struct nd_error *rootless_certificate_hash(gnutls_x509_crt_t certificate,
                                                         char ret[static CERTIFICATE_HASH_TEXT]);
