/* SPDX-License-Identifier: Apache-2.0 */
/* client-auth.h - client certificates: which clients may request reviews, and which may read
 * metrics
 *
 * A certificate is accepted if it leads to the CA, allows client authentication (or any use), is
 * valid now, and has a name of the list: its common name, or a DNS name or URI among its
 * alternative names. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

struct guard_client_auth;

/* Each includes the ones before. */
enum guard_right {
        GUARD_RIGHT_NONE,
        GUARD_RIGHT_METRICS,
        GUARD_RIGHT_REVIEW,
};

/* Owned by the caller; must outlive the object. */
struct guard_client_names {
        char *const *items;
        size_t count;
};

struct guard_client_verdict {
        enum guard_right right;
        time_t until;    /* when the certificate expires */
        uint64_t number; /* generation of the CA that checked it; 0: not checked yet */
        char name[128];  /* name in the certificate, for the log; "": none */
        const char *why; /* reason of a refusal, a constant; nullptr: accepted */
};

[[nodiscard]] struct nd_error *guard_client_auth_new(const char *ca, struct guard_client_names reviewers,
                                                     struct guard_client_names readers, struct guard_client_auth **ret);
void guard_client_auth_free(struct guard_client_auth *auth);

/* Replaces the CA. Verdicts of the former one become invalid. The former CA stays if the new one
 * cannot be read. */
[[nodiscard]] struct nd_error *guard_client_auth_renew(struct guard_client_auth *auth, const char *ca);

/* Returns the right of the client of a TLS session (gnutls_session_t). Cheap while the verdict of
 * the connection is valid. */
enum guard_right guard_client_auth_check(const struct guard_client_auth *auth, void *session, time_t now,
                                         struct guard_client_verdict *verdict);

/* The same from certificates in DER, the client's own first. */
struct guard_client_der {
        const unsigned char *bytes;
        size_t size;
};
void guard_client_auth_judge(const struct guard_client_auth *auth, const struct guard_client_der *chain, size_t count,
                             time_t now, struct guard_client_verdict *ret);
