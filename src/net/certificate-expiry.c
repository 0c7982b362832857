/* SPDX-License-Identifier: Apache-2.0 */
#include "net/certificate-expiry.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>

static gnutls_datum_t datum_of(const char *text) {
        return (gnutls_datum_t) {.data = (unsigned char *) text, .size = (unsigned) strlen(text)};
}

static struct nd_error *read_time(const char *certificate, time_t *ret) {
        gnutls_datum_t text = datum_of(certificate);
        gnutls_x509_crt_t parsed = nullptr;
        time_t when;
        int r;

        if (gnutls_x509_crt_init(&parsed) < 0)
                abort(); /* out of memory, as everywhere */
        r = gnutls_x509_crt_import(parsed, &text, GNUTLS_X509_FMT_PEM);
        when = r < 0 ? 0 : gnutls_x509_crt_get_expiration_time(parsed);
        gnutls_x509_crt_deinit(parsed);
        if (r < 0)
                return nd_error_new(ND_INVALID, 0, "not a certificate in PEM format: %s", gnutls_strerror(r));
        *ret = when;
        return nullptr;
}

/* GnuTLS compares key and certificate when they become credentials. */
static struct nd_error *match(const char *certificate, const char *key) {
        gnutls_datum_t certificate_text = datum_of(certificate), key_text = datum_of(key);
        gnutls_certificate_credentials_t credentials = nullptr;
        int r;

        if (gnutls_certificate_allocate_credentials(&credentials) < 0)
                abort();
        r = gnutls_certificate_set_x509_key_mem(credentials, &certificate_text, &key_text, GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(credentials);
        return r < 0 ? nd_error_new(ND_INVALID, 0, "the certificate and its key do not match: %s", gnutls_strerror(r))
                     : nullptr;
}

struct nd_error *nd_certificate_expiry_read(const char *certificate, const char *key, time_t *ret) {
        time_t when = 0;

        nd_try(read_time(certificate, &when));
        if (key)
                nd_try(match(certificate, key));
        *ret = when;
        return nullptr;
}

const char *nd_certificate_expiry_text(time_t when, char text[static ND_CERTIFICATE_EXPIRY_TEXT]) {
        struct tm parts = {};

        (void) gmtime_r(&when, &parts);
        if (strftime(text, ND_CERTIFICATE_EXPIRY_TEXT, "%Y-%m-%d %H:%M UTC", &parts) == 0)
                (void) snprintf(text, ND_CERTIFICATE_EXPIRY_TEXT, "an unknown time");
        return text;
}
