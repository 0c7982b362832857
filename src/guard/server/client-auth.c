/* SPDX-License-Identifier: Apache-2.0 */
/* client-auth.c - see client-auth.h
 *
 * libmicrohttpd requests a certificate from every client and accepts any, or none: the kubelet's
 * probes have none. So the chain is verified here, once for each connection, and again when the CA
 * was replaced or the certificate has expired. */
#include "guard/server/client-auth.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>

enum {
        CHAIN = 8, /* certificates in a client's chain */
        NAME_BYTES = 256,
        SUBJECT_NAMES = 64, /* alternative names that are compared */
};

struct guard_client_auth {
        gnutls_x509_trust_list_t trust;
        uint64_t number; /* generation of the CA, from 1 */
        struct guard_client_names reviewers, readers;
};

static struct nd_error *read_authority(const char *ca, gnutls_x509_trust_list_t *ret) {
        gnutls_datum_t text = {.data = (unsigned char *) ca, .size = (unsigned) strlen(ca)};
        gnutls_x509_trust_list_t trust = nullptr;
        int r;

        if (gnutls_x509_trust_list_init(&trust, 0) < 0)
                abort(); /* out of memory, as everywhere */
        r = gnutls_x509_trust_list_add_trust_mem(trust, &text, nullptr, GNUTLS_X509_FMT_PEM, 0, 0);
        if (r > 0) {
                *ret = trust;
                return nullptr;
        }
        gnutls_x509_trust_list_deinit(trust, 1);
        return nd_error_new(ND_INVALID, 0, "clientCA: %s", r < 0 ? gnutls_strerror(r) : "the file contains no certificate");
}

struct nd_error *guard_client_auth_new(const char *ca, struct guard_client_names reviewers, struct guard_client_names readers,
                                       struct guard_client_auth **ret) {
        gnutls_x509_trust_list_t trust = nullptr;
        struct guard_client_auth *auth;

        nd_try(read_authority(ca, &trust));
        auth = nd_new(struct guard_client_auth);
        *auth = (struct guard_client_auth) {.trust = trust, .number = 1, .reviewers = reviewers, .readers = readers};
        *ret = auth;
        return nullptr;
}

void guard_client_auth_free(struct guard_client_auth *auth) {
        if (!auth)
                return;
        gnutls_x509_trust_list_deinit(auth->trust, 1);
        free(auth);
}

struct nd_error *guard_client_auth_renew(struct guard_client_auth *auth, const char *ca) {
        gnutls_x509_trust_list_t trust = nullptr;

        nd_try(read_authority(ca, &trust));
        gnutls_x509_trust_list_deinit(auth->trust, 1);
        auth->trust = trust;
        auth->number++;
        return nullptr;
}

static bool is_named(const struct guard_client_names *names, const char *name, size_t length) {
        for (size_t i = 0; i < names->count; i++)
                if (strlen(names->items[i]) == length && memcmp(names->items[i], name, length) == 0)
                        return true;
        return false;
}

static enum guard_right right_of(const struct guard_client_auth *auth, const char *name, size_t length) {
        if (is_named(&auth->reviewers, name, length))
                return GUARD_RIGHT_REVIEW;
        return is_named(&auth->readers, name, length) ? GUARD_RIGHT_METRICS : GUARD_RIGHT_NONE;
}

/* Returns the common name, if there is exactly one. */
static bool common_name(gnutls_x509_crt_t certificate, char name[static NAME_BYTES], size_t *ret_length) {
        size_t size = NAME_BYTES, other = 0;

        if (gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &size) < 0)
                return false;
        if (gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 1, 0, nullptr, &other) !=
            GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
                return false;
        *ret_length = strnlen(name, NAME_BYTES);
        /* and without a null byte inside */
        return *ret_length > 0 && *ret_length < NAME_BYTES && size - *ret_length <= 1;
}

static enum guard_right right_by_names(const struct guard_client_auth *auth, gnutls_x509_crt_t certificate,
                                       struct guard_client_verdict *verdict) {
        enum guard_right best = GUARD_RIGHT_NONE, one;
        char name[NAME_BYTES];
        size_t length = 0;

        if (common_name(certificate, name, &length)) {
                best = right_of(auth, name, length);
                (void) snprintf(verdict->name, sizeof verdict->name, "%.*s", (int) length, name);
        }
        for (unsigned i = 0; i < SUBJECT_NAMES; i++) {
                size_t size = sizeof name;
                int kind = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &size, nullptr);

                if (kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
                        break;
                if (kind != GNUTLS_SAN_DNSNAME && kind != GNUTLS_SAN_URI)
                        continue;
                one = right_of(auth, name, size);
                best = one > best ? one : best;
        }
        return best;
}

/* Whether the chain leads to the CA and allows client authentication. */
static bool is_trusted(const struct guard_client_auth *auth, gnutls_x509_crt_t *chain, unsigned count) {
        gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (void *) GNUTLS_KP_TLS_WWW_CLIENT};
        unsigned status = 0;

        return gnutls_x509_trust_list_verify_crt2(auth->trust, chain, count, &purpose, 1, 0, &status, nullptr) >= 0 &&
               status == 0;
}

static void judge_chain(const struct guard_client_auth *auth, gnutls_x509_crt_t *chain, unsigned count,
                        struct guard_client_verdict *verdict) {
        verdict->until = gnutls_x509_crt_get_expiration_time(chain[0]);
        if (!is_trusted(auth, chain, count)) {
                verdict->why = "the certificate is not a valid client certificate issued by clientCA";
                return;
        }
        verdict->right = right_by_names(auth, chain[0], verdict);
        if (verdict->right == GUARD_RIGHT_NONE)
                verdict->why = "none of the certificate's names is in clientNames";
}

void guard_client_auth_judge(const struct guard_client_auth *auth, const struct guard_client_der *chain, size_t count,
                             time_t now, struct guard_client_verdict *ret) {
        gnutls_x509_crt_t read[CHAIN];
        unsigned done = 0;
        bool readable = true;

        *ret = (struct guard_client_verdict) {.number = auth->number, .until = now};
        if (count == 0 || count > CHAIN) {
                ret->why = count == 0 ? "no client certificate" : "the certificate chain is too long";
                return;
        }
        for (; done < count && readable; done++) {
                gnutls_datum_t der = {.data = (unsigned char *) chain[done].bytes, .size = (unsigned) chain[done].size};

                if (gnutls_x509_crt_init(&read[done]) < 0)
                        abort(); /* out of memory, as everywhere */
                readable = gnutls_x509_crt_import(read[done], &der, GNUTLS_X509_FMT_DER) >= 0;
        }
        if (readable)
                judge_chain(auth, read, done, ret);
        else
                ret->why = "the certificate cannot be parsed";
        for (unsigned i = 0; i < done; i++)
                gnutls_x509_crt_deinit(read[i]);
}

enum guard_right guard_client_auth_check(const struct guard_client_auth *auth, void *session, time_t now,
                                         struct guard_client_verdict *verdict) {
        struct guard_client_der chain[CHAIN + 1];
        const gnutls_datum_t *sent;
        unsigned count = 0;

        if (verdict->number == auth->number && (verdict->right == GUARD_RIGHT_NONE || now < verdict->until))
                return verdict->right;
        sent = session ? gnutls_certificate_get_peers(session, &count) : nullptr;
        count = !sent ? 0 : count > CHAIN ? CHAIN + 1 : count;
        for (unsigned i = 0; i < count; i++)
                chain[i] = (struct guard_client_der) {.bytes = sent[i].data, .size = sent[i].size};
        guard_client_auth_judge(auth, chain, count, now, verdict);
        return verdict->right;
}
