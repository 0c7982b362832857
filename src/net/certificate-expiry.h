/* SPDX-License-Identifier: Apache-2.0 */
/* certificate-expiry.h - when a certificate expires */
#pragma once

#include <time.h>

#include "base/error.h"

/* Returns when the first certificate of a PEM text expires. key: PEM of its private key, which must
 * match; nullptr: not checked. */
[[nodiscard]] struct nd_error *nd_certificate_expiry_read(const char *certificate, const char *key, time_t *ret);

enum {
        ND_CERTIFICATE_EXPIRY_TEXT = 32,
};

/* "2026-11-17 09:40 UTC" */
const char *nd_certificate_expiry_text(time_t when, char text[static ND_CERTIFICATE_EXPIRY_TEXT]);
