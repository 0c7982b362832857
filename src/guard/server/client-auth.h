/* SPDX-License-Identifier: Apache-2.0 */
/* client-auth.h - client certificates: which clients may ask for a review, and which may read
 * metrics
 *
 * A certificate counts when it leads to the certificate authority, is made for clients (or for any
 * use), is valid now, and has a name of the list: its common name, or a DNS name or URI of its
 * alternative names. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

struct guard_client_auth;

enum guard_right { /* each includes those before */
                   GUARD_RIGHT_NONE,
                   GUARD_RIGHT_METRICS,
                   GUARD_RIGHT_REVIEW,
};

struct guard_client_names { /* the caller's; they must outlive the object */
        char *const *items;
        size_t count;
};

struct guard_client_verdict {
        enum guard_right right;
        time_t until;    /* when the certificate ends */
        uint64_t number; /* of the authority that it was checked with; 0: not checked yet */
        char name[128];  /* as the certificate says it, for the log; "": there is none */
        const char *why; /* a constant; nullptr: it counts */
};

[[nodiscard]] struct nd_error *guard_client_auth_new(const char *ca, struct guard_client_names reviewers,
                                                     struct guard_client_names readers, struct guard_client_auth **ret);
void guard_client_auth_free(struct guard_client_auth *auth);

/* Another authority. What was decided with the former one is decided again; with one that cannot be
 * read the former stays. */
[[nodiscard]] struct nd_error *guard_client_auth_renew(struct guard_client_auth *auth, const char *ca);

/* What the client of a TLS session (gnutls_session_t) may do. Cheap where the verdict of its
 * connection still stands. */
enum guard_right guard_client_auth_check(const struct guard_client_auth *auth, void *session, time_t now,
                                         struct guard_client_verdict *verdict);

/* The same from certificates in DER, the client's own first. */
struct guard_client_der {
        const unsigned char *bytes;
        size_t size;
};
void guard_client_auth_judge(const struct guard_client_auth *auth, const struct guard_client_der *chain, size_t count,
                             time_t now, struct guard_client_verdict *ret);
