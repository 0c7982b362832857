/* SPDX-License-Identifier: Apache-2.0 */
/* authority.h - the authorities of a guard that makes its own certificate, and their rotation
 *
 * API servers verify the guard by a bundle that they get from the webhook configurations. A new
 * authority is first added to the bundle, then signs, then the former one is removed; between two
 * of these steps passes the overlap, in which all API servers and guards see the last one. So at no
 * moment an API server meets a certificate that its bundle does not verify. */
#pragma once

#include "base/json.h"
#include "guard/server/issue.h"

enum {
        GUARD_AUTHORITY_BYTES = 64 << 10, /* maximum of one PEM text */
};

struct guard_authority {
        struct guard_issued current; /* signs the guard's certificate; empty: none was made yet */
        struct guard_issued next;    /* in the bundle, does not sign yet; empty: none */
        char *previous;              /* certificate of the former one, in the bundle; or nullptr */
        struct guard_issued server;  /* the guard's certificate */
        uint64_t since;              /* last change of the authorities, in seconds since 1970 */
};

void guard_authority_done(struct guard_authority *authority);

/* Reads the data of a Secret. What is missing or cannot be read is left empty. */
void guard_authority_decode(yyjson_val *data, struct guard_authority *ret);
/* Writes the member "data"; keys that are not used are null, as a merge patch needs them. */
void guard_authority_encode(const struct guard_authority *authority, struct nd_json_out *out);
/* The certificates with which API servers verify the guard, PEM. */
[[nodiscard]] char *guard_authority_bundle(const struct guard_authority *authority);

enum guard_authority_step {
        GUARD_AUTHORITY_KEPT,      /* nothing to do */
        GUARD_AUTHORITY_MADE,      /* the first authority and certificate */
        GUARD_AUTHORITY_ANNOUNCED, /* a new authority is in the bundle */
        GUARD_AUTHORITY_SWITCHED,  /* it signs from now on */
        GUARD_AUTHORITY_RETIRED,   /* the bundle contains only the new authority */
        GUARD_AUTHORITY_RENEWED,   /* a new certificate of the same authority */
};

struct guard_authority_settings {
        const struct nd_strings *names; /* of the certificate */
        unsigned authority_days, server_days;
        uint64_t overlap_seconds;
        uint64_t now;  /* seconds since 1970 */
        bool rotate;   /* make a new authority now */
        bool in_place; /* webhook configurations have the bundle */
};

/* Does the next step that is due, at most one. */
[[nodiscard]] struct nd_error *guard_authority_advance(struct guard_authority *authority,
                                                       const struct guard_authority_settings *settings,
                                                       enum guard_authority_step *ret);
