/* SPDX-License-Identifier: Apache-2.0 */
/* issue.h - a certificate for the guard, signed by an authority of its own */
#pragma once

#include "base/error.h"
#include "base/strings.h"

enum {
        GUARD_ISSUE_NAMES = 64, /* in one certificate */
        GUARD_ISSUE_MOST_DAYS = 36500,
};

/* PEM texts; wiped when freed. */
struct guard_issued {
        char *certificate, *key;
};

void guard_issued_done(struct guard_issued *issued);

/* An authority that signs nothing but certificates of servers below it. */
[[nodiscard]] struct nd_error *guard_issue_authority(unsigned days, struct guard_issued *ret);

/* A server's certificate for these names: DNS names, IPv4 and IPv6 addresses. The authority's
 * certificate and key must match. It does not outlive the authority. */
[[nodiscard]] struct nd_error *guard_issue_server(const struct guard_issued *authority, const struct nd_strings *names,
                                                  unsigned days, struct guard_issued *ret);
