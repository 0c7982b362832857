/* SPDX-License-Identifier: Apache-2.0 */
/* subject.h - users and service accounts whose access is checked */
#pragma once

#include "policy/scc.h"

struct guard_subject {
        const char *name;
        const char *uid;
        struct nd_shape_texts groups;
        const char *extra; /* a JSON object; nullptr: none */
};

/* A service account as the API server authenticates it. is_authenticated: also with the group of
 * all users that are. */
struct guard_subject guard_subject_of_account(const char *namespace, const char *name, bool is_authenticated,
                                              struct nd_arena *arena);
/* Whether the constraint itself names the subject or one of its groups. */
bool guard_subject_is_listed(const struct guard_subject *subject, const struct nd_scc *scc);
