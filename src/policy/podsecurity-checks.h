/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-checks.h - the table of checks, for podsecurity.c */
#pragma once

#include "policy/podsecurity.h"

enum nd_podsecurity_spares { /* whom a revision of a check does not ask */
                             ND_PODSECURITY_SPARES_NOBODY = 0,
                             ND_PODSECURITY_SPARES_WINDOWS = 1 << 0,
                             ND_PODSECURITY_SPARES_USERNS = 1 << 1,
};

enum {
        ND_PODSECURITY_REVISIONS = 5,
};

/* From one minor version on a check is done in this way. */
struct nd_podsecurity_revision {
        uint32_t from;
        enum nd_podsecurity_spares spares;
        const char *const *allowed; /* a list that ends with nullptr, for the checks that have one */
        /* Fills reason and detail where the pod is not allowed. */
        void (*run)(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                    struct nd_podsecurity_finding *finding);
};

struct nd_podsecurity_check {
        const char *id; /* nullptr ends the table */
        enum nd_level level;
        const char *overrides; /* a baseline check that need not run at the restricted level */
        struct nd_podsecurity_revision revisions[ND_PODSECURITY_REVISIONS];
};

extern const struct nd_podsecurity_check nd_podsecurity_checks[]; /* in the order in which findings are told */

/* ---- checks of profiles (podsecurity-profiles.c) ---- */

void nd_podsecurity_check_apparmor(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                   struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_selinux(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                  struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_seccomp_annotations(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                              struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_seccomp_baseline(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                           struct nd_podsecurity_finding *finding);
void nd_podsecurity_check_seccomp_restricted(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                             struct nd_podsecurity_finding *finding);
