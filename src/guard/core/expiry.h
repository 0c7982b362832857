/* SPDX-License-Identifier: Apache-2.0 */
/* expiry.h - when a certificate expires */
#pragma once

#include <time.h>

#include "base/error.h"

/* Returns when the first certificate of a PEM text expires. key: PEM of its private key, which must
 * match; nullptr: not checked. */
[[nodiscard]] struct nd_error *guard_expiry_read(const char *certificate, const char *key, time_t *ret);

enum {
        GUARD_EXPIRY_TEXT = 32,
};

/* "2026-11-17 09:40 UTC" */
const char *guard_expiry_text(time_t when, char text[static GUARD_EXPIRY_TEXT]);
