/* SPDX-License-Identifier: Apache-2.0 */
/* scc-refusal.h - what the user of a refused pod reads
 *
 * First one sentence that says what to do, then the constraints that nearly fit. The text is short:
 * events and terminals cut long ones. OpenShift's text, with every reason of every constraint, is
 * in the choice and goes to the audit log. */
#pragma once

#include "guard/access/rbac.h"
#include "policy/scc-advice.h"

enum {
        GUARD_REFUSAL_BYTES = 1024,
};

struct guard_refusal {
        const struct guard_rbac *rbac;
        const struct guard_review *review;
        const struct guard_subject *user;            /* who creates the pod */
        const struct guard_subject *service_account; /* of the pod; its name is nullptr: none */
        const struct nd_scc_request *request;
        const struct nd_pod *pod;
        struct nd_arena *arena;
};

/* Returns the text, at most GUARD_REFUSAL_BYTES long, in the arena. */
const char *guard_refusal_text(const struct guard_refusal *refusal);

/* Returns a name, fit for a terminal: short, and quoted if it has unusual characters. */
const char *guard_refusal_name(const char *name, struct nd_arena *arena);
/* Returns "serviceaccount shop:default" or "user alice", fit for a terminal. */
const char *guard_refusal_subject(const struct guard_subject *subject, struct nd_arena *arena);
