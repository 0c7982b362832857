/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-checks.h - the table of checks, for podsecurity.c */
#pragma once

#include "policy/podsecurity.h"

enum check_spares { /* whom a revision of a check does not ask */
                    SPARES_NOBODY = 0,
                    SPARES_WINDOWS = 1 << 0,
                    SPARES_USER_NAMESPACE = 1 << 1,
};

enum {
        CHECK_REVISIONS = 5,
};

/* From one minor version on a check is done in this way. */
struct check_revision {
        uint32_t from;
        enum check_spares spares;
        const char *const *allowed; /* a list that ends with nullptr, for the checks that have one */
        /* Fills reason and detail where the pod is not allowed. */
        void (*run)(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                    struct nd_podsecurity_finding *finding);
};

struct check {
        const char *id; /* nullptr ends the table */
        enum nd_level level;
        const char *overrides; /* a baseline check that need not run at the restricted level */
        struct check_revision revisions[CHECK_REVISIONS];
};

extern const struct check podsecurity_checks[]; /* in the order in which findings are told */
